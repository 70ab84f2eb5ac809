// Limits of a process's own. Here and not in test_app, because a sanitizer's shadow is larger than any of them.
#include "app/memory.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>

namespace braid::app {
namespace {

// In a process of its own, which may map so much more than it has: never less than it takes the limits to be for.
void expect_limited(decltype(RLIMIT_AS) what, const char* field, const std::string& bound) {
  std::ifstream status("/proc/self/status");
  std::uint64_t mapped = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) mapped = std::stoull(line.substr(line.find(':') + 1)) * 1024U;
  ASSERT_GT(mapped, 0U) << field;
  const std::uint64_t room = std::uint64_t{512} << 20U;
  const rlimit limit{mapped + room, RLIM_INFINITY};
  EXPECT_EXIT(
      {
        ::setrlimit(what, &limit);
        const MemoryLeft left = memory_left().value();
        std::fprintf(stderr, "%s, %s", left.bytes > 0 && left.bytes < room ? "within it" : "not within it", left.bound.c_str());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "^within it, " + bound + "$");
}

TEST(MemoryLeft, KeepsWithinALimitOfAddressSpace) { expect_limited(RLIMIT_AS, "VmSize", "ulimit -v"); }
TEST(MemoryLeft, KeepsWithinALimitOfData) { expect_limited(RLIMIT_DATA, "VmData", "ulimit -d"); }

}  // namespace
}  // namespace braid::app
