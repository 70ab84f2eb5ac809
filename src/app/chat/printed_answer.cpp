#include "app/chat/printed_answer.h"

#include "braid/printable.h"
#include "braid/value.h"
#include "net/json/write_value.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace braid::app {

PrintedAnswer::PrintedAnswer(bool as_json, std::string model)
    : as_json_(as_json), terminal_(::isatty(STDOUT_FILENO) == 1), model_(std::move(model)) {}

void PrintedAnswer::add(std::string_view piece) {
  spoken_ += piece;
  if (as_json_) return;
  fmt::print("{}", terminal_ ? printable(piece, "\n\t") : piece);  // what a model writes steers no terminal
  std::fflush(stdout);
}

std::string PrintedAnswer::finish(bool failed) {
  std::string line;
  if (as_json_ && !failed)
    net::json::append_value(
        line, ValueDict{{"model", model_}, {"message", ValueDict{{"role", "assistant"}, {"content", spoken_}}}, {"done", true}});
  if (!as_json_ || !failed) fmt::print("{}\n", line);
  std::fflush(stdout);
  return std::move(spoken_);
}

}  // namespace braid::app
