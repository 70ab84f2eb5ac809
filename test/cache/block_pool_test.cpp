#include "cache/block_pool.h"

#include "cache/block_table.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace braid::cache {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(5);
  std::set<BlockId> seen;
  for (int i = 0; i < 5; ++i) seen.insert(pool.allocate().value());
  EXPECT_EQ(seen, (std::set<BlockId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.allocate(), std::nullopt);
  EXPECT_EQ(pool.free(), 0);
  EXPECT_EQ(pool.total(), 5);
}

TEST(BlockPool, SharedBlockIsFreeAfterItsLastOwner) {
  BlockPool pool(1);
  const BlockId block = pool.allocate().value();
  pool.share(block);
  pool.release(block);
  EXPECT_EQ(pool.free(), 0);
  pool.release(block);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.allocate(), block);
}

TEST(BlockPool, OfNothingIsAlwaysExhausted) {
  BlockPool pool(0);
  EXPECT_EQ(pool.allocate(), std::nullopt);
}

TEST(BlockPool, KeptBlocksAreHandedOutLastAndTheOldestFirst) {
  BlockPool pool(3);
  std::vector<BlockId> evicted;
  pool.on_evict([&](BlockId block) { evicted.push_back(block); });
  const BlockId first = pool.allocate().value();
  const BlockId second = pool.allocate().value();
  const BlockId plain = pool.allocate().value();
  for (const BlockId block : {first, second}) pool.keep(block);
  for (const BlockId block : {second, first, plain}) pool.release(block);
  EXPECT_EQ(pool.free(), 3);
  EXPECT_EQ(pool.cached(), 2);
  EXPECT_EQ(pool.allocate(), plain);
  EXPECT_EQ(pool.allocate(), second);
  pool.share(first);
  EXPECT_EQ(pool.cached(), 0);
  EXPECT_EQ(pool.allocate(), std::nullopt);
  EXPECT_EQ(evicted, std::vector<BlockId>{second});
  pool.release(second);
  EXPECT_EQ(pool.cached(), 0) << "its new contents are not known to anybody";
  EXPECT_EQ(pool.evictions(), 1U);
}

#ifndef NDEBUG
TEST(BlockPool, CachedBlocksAreEmptiedAndHeldOnesStay) {
  BlockPool pool(3);
  std::vector<BlockId> told;
  pool.on_evict([&](BlockId block) { told.push_back(block); });
  const BlockId held = pool.allocate().value();
  const BlockId first = pool.allocate().value();
  const BlockId second = pool.allocate().value();
  for (const BlockId block : {held, first, second}) pool.keep(block);
  for (const BlockId block : {first, second}) pool.release(block);
  EXPECT_EQ(pool.empty_cached(), 2);
  EXPECT_EQ(told, (std::vector<BlockId>{first, second}));
  EXPECT_EQ(pool.cached(), 0);
  EXPECT_EQ(pool.free(), 2);
  EXPECT_EQ(pool.evictions(), 0U);
  pool.release(held);
  EXPECT_EQ(pool.cached(), 1) << "what was in use is kept as ever";
  EXPECT_EQ(pool.allocate(), second);
  EXPECT_EQ(pool.allocate(), first);
}

TEST(BlockPoolDeathTest, DoubleFreeAsserts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BlockPool pool(2);
  const BlockId block = pool.allocate().value();
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "releasing a free block");
  EXPECT_DEATH(pool.share(block), "sharing an empty block");
  EXPECT_DEATH(pool.release(7), "no such block");
}
#endif

// Random interleavings against the obvious model: a map from block to its number of owners.
TEST(BlockPool, MatchesASimpleModel) {
  constexpr int kTotal = 37;
  BlockPool pool(kTotal);
  std::map<BlockId, int> owners;
  std::mt19937 random(7);
  for (int i = 0; i < 50'000; ++i) {
    const auto pick = owners.empty() ? owners.end() : std::next(owners.begin(), static_cast<int>(random() % owners.size()));
    switch (random() % 3) {
      case 0:
        if (const auto block = pool.allocate()) {
          ASSERT_TRUE(owners.emplace(*block, 1).second) << "block " << *block << " was handed out twice";
        } else {
          ASSERT_EQ(owners.size(), std::size_t{kTotal});
        }
        break;
      case 1:
        if (pick == owners.end()) break;
        pool.share(pick->first);
        ++pick->second;
        break;
      default:
        if (pick == owners.end()) break;
        pool.release(pick->first);
        if (--pick->second == 0) owners.erase(pick);
    }
    ASSERT_EQ(pool.free(), kTotal - static_cast<int>(owners.size()));
    for (const auto& [block, count] : owners) ASSERT_EQ(pool.references(block), count);
  }
}

TEST(BlockTable, GrowsWhollyOrNotAtAll) {
  BlockPool pool(4);
  BlockTable first(pool);
  BlockTable second(pool);
  ASSERT_TRUE(first.grow_to(3));
  EXPECT_FALSE(second.grow_to(2));
  EXPECT_EQ(second.size(), 0);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_TRUE(first.grow_to(2)) << "having more than asked for is enough";
  EXPECT_EQ(first.size(), 3);
}

TEST(BlockTable, GivesItsBlocksBack) {
  BlockPool pool(4);
  {
    BlockTable table(pool);
    ASSERT_TRUE(table.grow_to(4));
    const std::set<BlockId> ids(table.first(4).begin(), table.first(4).end());
    EXPECT_EQ(ids.size(), 4U);
    table.clear();
    EXPECT_EQ(pool.free(), 4);
    ASSERT_TRUE(table.grow_to(2));
  }
  EXPECT_EQ(pool.free(), 4);
}

TEST(BlockPool, WithdrawnBlocksAreHandedOutNoMore) {
  BlockPool pool(6);
  std::vector<BlockId> evicted;
  pool.on_evict([&evicted](BlockId block) { evicted.push_back(block); });
  const BlockId used = pool.allocate().value();
  const BlockId cached = pool.allocate().value();
  pool.keep(cached);
  pool.release(cached);
  std::vector<BlockId> taken;
  pool.withdraw(2, taken);
  EXPECT_EQ(taken, (std::vector<BlockId>{5, 4})) << "those that were never handed out";
  EXPECT_EQ(pool.usable(), 4);
  EXPECT_EQ(pool.free(), 3);
  pool.withdraw(9, taken);
  EXPECT_EQ(taken.size(), 5U);
  EXPECT_EQ(evicted, std::vector<BlockId>{cached});
  EXPECT_EQ(pool.allocate(), std::nullopt);
  pool.release(used);
  EXPECT_EQ(pool.allocate(), used);
  pool.restore(5);
  EXPECT_EQ(pool.usable(), 6);
  std::set<BlockId> seen = {used};
  while (const std::optional<BlockId> block = pool.allocate()) EXPECT_TRUE(seen.insert(*block).second);
  EXPECT_EQ(seen.size(), 6U);
}

// The blocks of a state, say: all of it is forgotten with the first one.
TEST(BlockPool, WithdrawingABlockMayEmptyOthers) {
  BlockPool pool(6);
  std::vector<BlockId> evicted;
  std::vector<BlockId> state;
  pool.on_evict([&](BlockId block) {
    evicted.push_back(block);
    for (const BlockId part : state) pool.forget(part);
  });
  for (int i = 0; i < 3; ++i) state.push_back(*pool.allocate());
  for (const BlockId part : state) {
    pool.keep(part);
    pool.release(part);
  }
  std::vector<BlockId> taken;
  pool.withdraw(6, taken);
  EXPECT_EQ(evicted, std::vector<BlockId>{state.front()});
  std::ranges::sort(taken);
  EXPECT_EQ(taken, (std::vector<BlockId>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(pool.free(), 0);
}

}  // namespace
}  // namespace braid::cache
