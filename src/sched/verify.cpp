#include "sched/verify.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace braid::sched {

void abort_on_difference(const std::string& what) {
  fmt::print(stderr, "braid: --kv-verify: {} differs from what was computed; aborting\n", what);
  std::fflush(stderr);
  std::abort();
}

}  // namespace braid::sched
