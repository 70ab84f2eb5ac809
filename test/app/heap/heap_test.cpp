#include "app/heap.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <vector>

extern "C" int mi_version();

namespace braid::app {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t kilobytes_in_huge_pages() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string name; file >> name;)
    if (name == "AnonHugePages:") {
      std::size_t kilobytes = 0;
      file >> kilobytes;
      return kilobytes;
    }
  return 0;
}

bool has_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string choice;
  std::getline(file, choice);
  return !choice.empty() && choice.find("[never]") == std::string::npos;
}

// mimalloc 3 fills arenas of its own first, and is given none.
bool takes_room() { return mi_version() < 300; }

// Blocks of a stream's size, written to; freed at the end.
class Blocks {
 public:
  explicit Blocks(std::size_t bytes) {
    constexpr std::size_t kBlock = 4000;
    for (std::size_t got = 0; got < bytes; got += kBlock) {
      blocks_.push_back(static_cast<char*>(std::malloc(kBlock)));
      std::memset(blocks_.back(), 1, kBlock);
    }
  }
  ~Blocks() {
    for (char* block : blocks_) std::free(block);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

 private:
  std::vector<char*> blocks_;
};

TEST(Heap, GrowsInHugePages) {
  if (!has_huge_pages()) GTEST_SKIP() << "the system has none";
  if (!takes_room()) GTEST_SKIP() << "mimalloc 3 fills arenas of its own first";
  ASSERT_TRUE(grow_in_huge_pages(256 * kMiB));
  const std::size_t before = kilobytes_in_huge_pages();
  const Blocks streams(128 * kMiB);
  EXPECT_GT(kilobytes_in_huge_pages(), before + 32 * 1024);
}

TEST(Heap, GrowsBeyondWhatWasSetApart) {
  ASSERT_EQ(grow_in_huge_pages(64 * kMiB), takes_room());
  const Blocks streams(256 * kMiB);
}

TEST(Heap, TakesNothingFromWhatIsLimited) {
  for (const auto what : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(what, &before), 0);
    const rlimit limit{std::size_t{64} << 30, before.rlim_max};
    ASSERT_EQ(::setrlimit(what, &limit), 0);
    EXPECT_FALSE(grow_in_huge_pages(256 * kMiB));
    ASSERT_EQ(::setrlimit(what, &before), 0);
  }
  EXPECT_EQ(grow_in_huge_pages(256 * kMiB), takes_room());
}

}  // namespace
}  // namespace braid::app
