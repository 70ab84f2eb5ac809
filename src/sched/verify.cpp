#include "sched/verify.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

namespace braid::sched {

void abort_on_difference(const std::string& what) {
  fmt::print(stderr, "braid: --kv-verify: {} differs from what was computed; aborting\n", what);
  std::fflush(stderr);
  std::abort();
}

}  // namespace braid::sched
