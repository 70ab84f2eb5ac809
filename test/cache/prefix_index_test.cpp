#include "cache/prefix_index.h"

#include "cache/block_table.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace braid::cache {
namespace {

using Tokens = std::vector<std::int32_t>;

// A pool, an index of blocks of two tokens, and sequences that publish what they write.
class PrefixIndexTest : public testing::Test {
 protected:
  // A sequence that computes all these tokens without looking, and publishes its full blocks.
  std::unique_ptr<BlockTable> compute(const Tokens& tokens, const Scope& scope = {}, const std::vector<MediaSpan>& media = {}) {
    auto table = std::make_unique<BlockTable>(pool_);
    EXPECT_TRUE(table->grow_to(static_cast<std::int32_t>((tokens.size() + 1) / 2)));
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(tokens.size() / 2); ++i) {
      const BlockId parent = i > 0 ? (*table)[i - 1] : PrefixIndex::kNoParent;
      const auto known = index_.insert(parent, {scope, tokens, media}, static_cast<std::size_t>(i) * 2, (*table)[i]);
      if (!known) break;
      if (*known != (*table)[i]) table->replace(i, *known);
    }
    return table;
  }

  std::vector<BlockId> match(const Tokens& tokens, const Scope& scope = {}, const std::vector<MediaSpan>& media = {}) {
    std::vector<BlockId> path;
    index_.match({scope, tokens, media}, path);
    return path;
  }

  static std::vector<BlockId> blocks_of(const BlockTable& table, std::int32_t count) {
    return {table.first(count).begin(), table.first(count).end()};
  }

  BlockPool pool_{8};
  PrefixIndex index_{pool_, 2};
};

TEST_F(PrefixIndexTest, FindsTheLongestPathOfFullBlocks) {
  const auto table = compute({1, 2, 3, 4, 5});
  EXPECT_EQ(match({1, 2, 3, 4, 5, 6}), blocks_of(*table, 2)) << "the last block is not full";
  EXPECT_EQ(match({1, 2, 3, 4}), blocks_of(*table, 2));
  EXPECT_EQ(match({1, 2, 3}), blocks_of(*table, 1));
  EXPECT_EQ(match({1, 2, 9, 4}), blocks_of(*table, 1));
  EXPECT_TRUE(match({3, 4}).empty()) << "the same tokens elsewhere are something else";
  EXPECT_TRUE(match({1}).empty());
  EXPECT_TRUE(match({}).empty());
}

TEST_F(PrefixIndexTest, SaltsAndAdaptersShareNothing) {
  const auto plain = compute({1, 2, 3, 4});
  const auto mine = compute({1, 2, 3, 4}, {"", "mine"});
  const auto tuned = compute({1, 2, 3, 4}, {"mine", ""});
  EXPECT_EQ(match({1, 2, 3, 4}), blocks_of(*plain, 2));
  EXPECT_EQ(match({1, 2, 3, 4}, {"", "mine"}), blocks_of(*mine, 2));
  EXPECT_EQ(match({1, 2, 3, 4}, {"mine", ""}), blocks_of(*tuned, 2));
  EXPECT_TRUE(match({1, 2, 3, 4}, {"", "yours"}).empty());
  EXPECT_TRUE(match({1, 2, 3, 4}, {"mine", "mine"}).empty());
  EXPECT_EQ(pool_.free(), 2);
}

MediaSpan image(std::int32_t first, std::int32_t count, std::uint64_t digest) { return {first, count, {digest, 0}}; }

TEST_F(PrefixIndexTest, OtherImagesBehindTheSameTokensAreSomethingElse) {
  const Tokens tokens{9, 9, 9, 9, 9, 9};
  const auto table = compute(tokens, {}, {image(3, 2, 1)});
  EXPECT_EQ(match(tokens, {}, {image(3, 2, 1)}), blocks_of(*table, 3));
  EXPECT_EQ(match(tokens, {}, {image(3, 2, 2)}), blocks_of(*table, 1)) << "before the image it is the same";
  EXPECT_EQ(match(tokens), blocks_of(*table, 1));
  EXPECT_EQ(match(tokens, {}, {image(3, 1, 1)}), blocks_of(*table, 2)) << "an image that ends earlier is the same so far";
  EXPECT_EQ(match(tokens, {}, {image(3, 3, 1)}), blocks_of(*table, 2));
  EXPECT_EQ(match(tokens, {}, {image(3, 1, 1), image(4, 1, 1)}), blocks_of(*table, 2)) << "twice its first token";
  EXPECT_EQ(match(tokens, {}, {image(2, 3, 1)}), blocks_of(*table, 1));
}

// The same digest lies behind tokens of the second block, but not the same part of it.
TEST_F(PrefixIndexTest, TheSamePartOfAnImageIsAskedFor) {
  const auto index_key = [this](const std::vector<MediaSpan>& media) {
    std::vector<PrefixKey> keys;
    index_.keys({{}, Tokens{9, 9, 9, 9}, media}, keys);
    return keys.at(1);
  };
  const std::vector<std::vector<MediaSpan>> all{{image(0, 4, 1)},
                                                {image(1, 3, 1)},
                                                {image(2, 2, 1)},
                                                {image(2, 1, 1)},
                                                {image(3, 1, 1)},
                                                {image(1, 2, 1)},
                                                {image(1, 1, 1), image(2, 2, 1)}};
  std::vector<PrefixKey> keys;
  for (const auto& media : all) keys.push_back(index_key(media));
  for (const PrefixKey& key : keys) EXPECT_EQ(std::ranges::count(keys, key), 1);
  EXPECT_EQ(index_key({image(0, 5, 1)}), index_key({image(0, 4, 1)})) << "what lies behind the block is not part of it";
}

TEST_F(PrefixIndexTest, CopiesNoFurtherThanTheImagesAgree) {
  const Tokens tokens{9, 9, 9};
  BlockPool pool(2);
  PrefixIndex index(pool, 4);
  BlockTable table(pool);
  ASSERT_TRUE(table.grow_to(1));
  const std::vector<MediaSpan> media{image(1, 2, 1)};
  index.insert_partial(PrefixIndex::kNoParent, {{}, tokens, media}, 0, table[0]);
  const auto common = [&](const std::vector<MediaSpan>& other) {
    return index.common_beginning(PrefixIndex::kNoParent, {{}, tokens, other}, 0).count;
  };
  EXPECT_EQ(common(media), 3);
  EXPECT_EQ(common({image(1, 9, 1)}), 3) << "it goes on behind what there is";
  EXPECT_EQ(common({image(1, 1, 1)}), 2);
  EXPECT_EQ(common({image(1, 2, 2)}), 1);
  EXPECT_EQ(common({image(0, 3, 1)}), 0);
  EXPECT_EQ(common({}), 1);
}

TEST_F(PrefixIndexTest, BlocksOutliveTheirSequence) {
  auto table = compute({1, 2, 3, 4, 5});
  const auto blocks = blocks_of(*table, 2);
  table.reset();
  EXPECT_EQ(pool_.free(), 8);
  EXPECT_EQ(pool_.cached(), 2) << "the partial one is empty";
  EXPECT_EQ(match({1, 2, 3, 4}), blocks);
  BlockTable next(pool_);
  next.adopt(blocks);
  EXPECT_EQ(pool_.cached(), 0);
  EXPECT_EQ(pool_.free(), 6);
}

// What a lower tier needs to keep an evicted block: everything it stands for.
TEST_F(PrefixIndexTest, ForgetsWhatNobodyHoldsAndTellsNobody) {
  int told = 0;
  index_.on_evict([&told](BlockId, std::int32_t, std::int32_t) { ++told; });
  const auto held = compute({1, 2, 3, 4});
  compute({1, 2, 7, 8, 9, 10}, {});  // its first block is the same
  compute({5, 6}, {"", "mine"});
  EXPECT_EQ(index_.forget_unused(), 3);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(match({1, 2, 7, 8}), blocks_of(*held, 1));
  EXPECT_EQ(match({1, 2, 3, 4}), blocks_of(*held, 2));
  EXPECT_TRUE(match({5, 6}, {"", "mine"}).empty());
  const auto again = compute({1, 2, 7, 8});
  EXPECT_EQ(match({1, 2, 7, 8}), blocks_of(*again, 2));
  EXPECT_EQ(index_.forget_unused(), 0);
}

TEST_F(PrefixIndexTest, TellsKeyAndPathOfABlockThatIsEvicted) {
  const std::vector<MediaSpan> media{image(1, 4, 1), image(5, 1, 2)};
  compute({1, 2, 3, 4, 5, 6}, {"tuned", "mine"}, media);
  std::vector<PrefixKey> keys;
  index_.keys({{"tuned", "mine"}, Tokens{1, 2, 3, 4, 5, 6, 7}, media}, keys);
  ASSERT_EQ(keys.size(), 3U);
  std::vector<std::pair<PrefixKey, Tokens>> evicted;
  PrefixIndex::Path path{{3}, {99}, {image(7, 7, 7)}};
  index_.on_evict([&](BlockId block, std::int32_t, std::int32_t) {
    const SequenceView found = index_.path_to(block, path);
    EXPECT_EQ(found.scope, (Scope{"tuned", "mine"}));
    const std::vector<MediaSpan> part{image(1, 3, 1)};
    EXPECT_TRUE(std::ranges::equal(found.media, path.tokens.size() == 6 ? media : part));
    evicted.emplace_back(index_.key(block), path.tokens);
  });
  BlockTable taker(pool_);
  ASSERT_TRUE(taker.grow_to(7));
  ASSERT_EQ(evicted.size(), 2U);
  EXPECT_EQ(evicted[0], std::pair(keys[2], Tokens{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(evicted[1], std::pair(keys[1], Tokens{1, 2, 3, 4}));
}

// As a window lets go of them: the beginning first, while the rest is in use. What lies below goes with it, after having been told.
TEST_F(PrefixIndexTest, TellsAllThatGoesWithAnEvictedBeginning) {
  const auto held = compute({1, 2, 3, 4, 5, 6});
  const auto branch = compute({1, 2, 9, 9});
  held->drop(0, 1);
  branch->drop(0, 1);
  std::vector<Tokens> told;
  index_.on_evict([&](BlockId block, std::int32_t, std::int32_t) {
    PrefixIndex::Path path;
    index_.path_to(block, path);
    told.push_back(path.tokens);
  });
  BlockTable taker(pool_);
  ASSERT_TRUE(taker.grow_to(pool_.free()));
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0], (Tokens{1, 2}));
  EXPECT_LT(std::ranges::find(told, Tokens{1, 2, 3, 4}), std::ranges::find(told, Tokens{1, 2, 3, 4, 5, 6}));
  EXPECT_NE(std::ranges::find(told, Tokens{1, 2, 9, 9}), told.end());
  EXPECT_TRUE(match({1, 2, 3, 4, 5, 6}).empty());
}

TEST(PrefixKeys, DependOnIdentityScopeAndBlockSize) {
  BlockPool pools[] = {BlockPool(4), BlockPool(4), BlockPool(4), BlockPool(4)};
  PrefixIndex plain(pools[0], 2), other(pools[1], 2, xxh3_key, "a"), larger(pools[2], 4), third(pools[3], 2, xxh3_key, "b");
  const Tokens tokens{1, 2, 3, 4};
  const auto first_key = [&](PrefixIndex& index, std::string_view salt, std::string_view adapter = {}) {
    std::vector<PrefixKey> keys;
    index.keys({{adapter, salt}, tokens, {}}, keys);
    return keys.at(0);
  };
  const PrefixKey keys[] = {first_key(plain, ""),       first_key(plain, "a"),    first_key(plain, "b"), first_key(other, ""),
                            first_key(other, "a"),      first_key(third, ""),     first_key(larger, ""), first_key(plain, "", "a"),
                            first_key(plain, "a", "a"), first_key(plain, "", "b")};
  for (const PrefixKey& key : keys) EXPECT_EQ(std::ranges::count(keys, key), 1);
}

TEST_F(PrefixIndexTest, TheSameTokensAreKeptOnce) {
  const auto first = compute({1, 2, 3, 4});
  const auto second = compute({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(blocks_of(*second, 2), blocks_of(*first, 2));
  EXPECT_EQ(pool_.free(), 5);
  EXPECT_EQ(match({1, 2, 3, 4, 5, 6}), blocks_of(*second, 3));
}

TEST_F(PrefixIndexTest, EmptyBlocksGoFirstThenTheOldestCachedFromItsEnd) {
  compute({1, 2, 3, 4, 5, 6});
  compute({7, 8, 9, 10});
  BlockTable taker(pool_);
  ASSERT_TRUE(taker.grow_to(3));
  EXPECT_EQ(pool_.evictions(), 0U);
  ASSERT_TRUE(taker.grow_to(4));
  EXPECT_EQ(match({1, 2, 3, 4, 5, 6}).size(), 2U);
  BlockTable reader(pool_);
  reader.adopt(match({1, 2}));  // whoever reads it makes it recent
  reader.clear();
  ASSERT_TRUE(taker.grow_to(7));
  EXPECT_EQ(match({1, 2, 3, 4, 5, 6}).size(), 1U);
  EXPECT_TRUE(match({7, 8, 9, 10}).empty());
  ASSERT_TRUE(taker.grow_to(8));
  EXPECT_TRUE(match({1, 2}).empty());
  EXPECT_EQ(pool_.evictions(), 5U);
  EXPECT_FALSE(taker.grow_to(9));
}

TEST_F(PrefixIndexTest, LongPathsAreFoundAcrossWindows) {
  BlockPool pool(400);
  PrefixIndex index(pool, 2);
  Tokens tokens(600);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i % 7);
  BlockTable table(pool);
  ASSERT_TRUE(table.grow_to(300));
  for (std::int32_t i = 0; i < 300; ++i) {
    const BlockId parent = i > 0 ? table[i - 1] : PrefixIndex::kNoParent;
    ASSERT_EQ(index.insert(parent, {{"", "s"}, tokens, {}}, static_cast<std::size_t>(i) * 2, table[i]), table[i]);
  }
  for (const std::size_t length : {599U, 257U, 256U, 128U, 127U}) {
    std::vector<BlockId> path;
    index.match({{"", "s"}, std::span(tokens).first(length), {}}, path);
    ASSERT_EQ(path.size(), length / 2);
    EXPECT_TRUE(std::ranges::equal(path, table.first(static_cast<std::int32_t>(length / 2))));
  }
}

}  // namespace
}  // namespace braid::cache
