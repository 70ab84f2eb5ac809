#include "app/commands/commands.h"
#include "app/standard_stream.h"
#include "braid/printable.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace braid::app {

int run_command(const bench::BenchOptions& options) { return bench::run_bench(options); }

int run_command(const Farewell& farewell) {
  fmt::print(farewell.exit_code == EXIT_SUCCESS ? stdout : stderr, "{}", farewell.text);
  return farewell.exit_code;
}

int report(const Error& error) {
  complain(printable(error.message, "\n"));  // it may quote a model file
  return error.code == ErrorCode::kInvalidArgument ? 2 : EXIT_FAILURE;
}

}  // namespace braid::app
