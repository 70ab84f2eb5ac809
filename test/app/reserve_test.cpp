// Memory that was set aside, over an allocator that a test can exhaust.
#include "app/reserve.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

namespace braid::app {
namespace {

bool is_exhausted = false;

void* allocate(std::size_t alignment, std::size_t bytes) {
  return is_exhausted ? nullptr : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

class ReserveTest : public testing::Test {
 protected:
  ReserveTest() {
    is_exhausted = false;
    reserve.fill();
  }
  ~ReserveTest() override {
    is_exhausted = true;
    while (void* block = reserve.allocate(16, 1)) std::free(block);
    is_exhausted = false;
  }

  Reserve reserve{allocate};
};

TEST_F(ReserveTest, GivesItsBlocksOnceAndOnlyWhenThereIsNoOtherMemory) {
  is_exhausted = true;
  std::set<void*> blocks;
  for (const Reserve::Size& size : Reserve::kSizes) {
    for (std::size_t i = 0; i < size.count; ++i) {
      void* block = reserve.allocate(16, size.bytes);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % Reserve::kAlignment, 0U);
      EXPECT_TRUE(blocks.insert(block).second);
      std::memset(block, 1, size.bytes);
    }
  }
  EXPECT_EQ(reserve.allocate(16, 1), nullptr);
  for (void* block : blocks) std::free(block);
}

TEST_F(ReserveTest, GivesLargerOnesWhenSmallOnesAreGone) {
  is_exhausted = true;
  for (std::size_t i = 0; i < Reserve::kSizes[0].count; ++i) std::free(reserve.allocate(16, 1));
  void* block = reserve.take(16, 1);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, Reserve::kSizes[1].bytes);
  std::free(block);
}

TEST_F(ReserveTest, HasNothingForLargeOrStrictlyAlignedOnes) {
  is_exhausted = true;
  EXPECT_EQ(reserve.allocate(16, Reserve::kSizes.back().bytes + 1), nullptr);
  EXPECT_EQ(reserve.allocate(2 * Reserve::kAlignment, 1), nullptr);
}

TEST_F(ReserveTest, IsMadeUpForWhenThereIsMemoryAgain) {
  is_exhausted = true;
  for (std::size_t i = 0; i < Reserve::kBlocks; ++i) std::free(reserve.allocate(16, 8));
  EXPECT_EQ(reserve.allocate(16, 8), nullptr);
  is_exhausted = false;
  for (int i = 0; i < 3; ++i) std::free(reserve.allocate(16, 8));
  is_exhausted = true;
  for (int i = 0; i < 3; ++i) {
    void* block = reserve.allocate(16, 8);
    EXPECT_NE(block, nullptr);
    std::free(block);
  }
  EXPECT_EQ(reserve.allocate(16, 8), nullptr);
}

}  // namespace
}  // namespace braid::app
