#include "cache/prefix_index.h"

#include "cache/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
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
  std::unique_ptr<BlockTable> compute(const Tokens& tokens, const std::string& salt = {}) {
    auto table = std::make_unique<BlockTable>(pool_);
    EXPECT_TRUE(table->grow_to(static_cast<std::int32_t>((tokens.size() + 1) / 2)));
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(tokens.size() / 2); ++i) {
      const BlockId parent = i > 0 ? (*table)[i - 1] : PrefixIndex::kNoParent;
      const auto known = index_.insert(parent, salt, std::span(tokens).subspan(static_cast<std::size_t>(i) * 2, 2), (*table)[i]);
      if (!known) break;
      if (*known != (*table)[i]) table->replace(i, *known);
    }
    return table;
  }

  std::vector<BlockId> match(const Tokens& tokens, const std::string& salt = {}) {
    std::vector<BlockId> path;
    index_.match(salt, tokens, path);
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

TEST_F(PrefixIndexTest, SaltsShareNothing) {
  const auto plain = compute({1, 2, 3, 4});
  const auto mine = compute({1, 2, 3, 4}, "mine");
  EXPECT_EQ(match({1, 2, 3, 4}), blocks_of(*plain, 2));
  EXPECT_EQ(match({1, 2, 3, 4}, "mine"), blocks_of(*mine, 2));
  EXPECT_TRUE(match({1, 2, 3, 4}, "yours").empty());
  EXPECT_EQ(pool_.free(), 4);
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
TEST_F(PrefixIndexTest, TellsKeyAndPathOfABlockThatIsEvicted) {
  compute({1, 2, 3, 4, 5, 6}, "mine");
  std::vector<PrefixKey> keys;
  index_.keys("mine", Tokens{1, 2, 3, 4, 5, 6, 7}, keys);
  ASSERT_EQ(keys.size(), 3U);
  std::vector<std::pair<PrefixKey, Tokens>> evicted;
  index_.on_evict([&](BlockId block) {
    Tokens path{99};
    EXPECT_EQ(index_.path_to(block, path), "mine");
    evicted.emplace_back(index_.key(block), path);
  });
  BlockTable taker(pool_);
  ASSERT_TRUE(taker.grow_to(7));
  ASSERT_EQ(evicted.size(), 2U);
  EXPECT_EQ(evicted[0], std::pair(keys[2], Tokens{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(evicted[1], std::pair(keys[1], Tokens{1, 2, 3, 4}));
}

TEST(PrefixKeys, DependOnIdentitySaltAndBlockSize) {
  BlockPool pools[] = {BlockPool(4), BlockPool(4), BlockPool(4)};
  PrefixIndex plain(pools[0], 2), other(pools[1], 2, xxh3_key, "a"), larger(pools[2], 4);
  const Tokens tokens{1, 2, 3, 4};
  const auto first_key = [&](PrefixIndex& index, std::string_view salt) {
    std::vector<PrefixKey> keys;
    index.keys(salt, tokens, keys);
    return keys.at(0);
  };
  const PrefixKey keys[] = {first_key(plain, ""), first_key(plain, "a"), first_key(other, ""), first_key(other, "a"), first_key(larger, "")};
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
    ASSERT_EQ(index.insert(parent, "s", std::span(tokens).subspan(static_cast<std::size_t>(i) * 2, 2), table[i]), table[i]);
  }
  for (const std::size_t length : {599U, 257U, 256U, 128U, 127U}) {
    std::vector<BlockId> path;
    index.match("s", std::span(tokens).first(length), path);
    ASSERT_EQ(path.size(), length / 2);
    EXPECT_TRUE(std::ranges::equal(path, table.first(static_cast<std::int32_t>(length / 2))));
  }
}

// Every key is the same, or one of four: nothing but the comparison of contents tells blocks apart.
template <std::uint64_t kKeys>
PrefixKey colliding_key(std::span<const std::byte> message) {
  return {xxh3_key(message).low % kKeys, 0};
}

// Random sequences against the obvious model: a map from (salt, all tokens up to its end) to the block that is known to hold them.
class IndexStorm {
 public:
  IndexStorm(std::uint32_t seed, PrefixIndex::Digest digest, bool exact)
      : random_(seed), index_(pool_, kBlockTokens, digest), contents_(kTotal), last_release_(kTotal, 0), exact_(exact) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      switch (pick(8)) {
        case 0:
        case 1: start(); break;
        case 2: finish(); break;
        default: compute_block(); break;
      }
      if (i % 16 == 0) check();
    }
    while (!sequences_.empty()) finish();
    check();
    EXPECT_EQ(pool_.free(), kTotal);
  }

  std::uint64_t hits() const { return hits_; }
  std::uint64_t evictions() const { return pool_.evictions(); }

 private:
  static constexpr std::int32_t kTotal = 24;
  static constexpr std::int32_t kBlockTokens = 2;
  static constexpr std::int32_t kLongest = 6;  // blocks
  static constexpr std::size_t kMostSequences = 8;
  using Prefix = std::pair<std::string, Tokens>;

  struct Running {
    explicit Running(BlockPool& pool) : table(pool) {}
    std::string salt;
    Tokens tokens;  // of its whole length
    BlockTable table;
    std::int32_t published = 0;
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }
  Running& any() { return *sequences_[static_cast<std::size_t>(pick(static_cast<int>(sequences_.size())))]; }

  static Prefix prefix(const Running& running, std::int32_t blocks) {
    return {running.salt, Tokens(running.tokens.begin(), running.tokens.begin() + blocks * kBlockTokens)};
  }

  void start() {
    if (sequences_.size() == kMostSequences) return finish();
    auto running = std::make_unique<Running>(pool_);
    running->salt = pick(3) == 0 ? "salt" : "";
    running->tokens.resize(static_cast<std::size_t>(1 + pick(kLongest)) * kBlockTokens);
    for (std::int32_t& token : running->tokens) token = pick(12) == 0 ? 1 : 0;
    std::vector<BlockId> path;
    index_.match(running->salt, running->tokens, path);
    running->table.adopt(path);
    running->published = static_cast<std::int32_t>(path.size());
    hits_ += path.size();
    for (std::int32_t i = 0; i < running->published; ++i)
      ASSERT_EQ(contents_[static_cast<std::size_t>(path[static_cast<std::size_t>(i)])], prefix(*running, i + 1)) << "a wrong block";
    const bool longer = running->table.size() * kBlockTokens < static_cast<std::int32_t>(running->tokens.size()) &&
                        known_.contains(prefix(*running, running->published + 1));
    ASSERT_FALSE(longer) << "a known block was not found";
    sequences_.push_back(std::move(running));
  }

  // The next block of some sequence is taken, written and, most times, published.
  void compute_block() {
    if (sequences_.empty()) return;
    Running& running = any();
    const std::int32_t next = running.table.size();
    if (next * kBlockTokens == static_cast<std::int32_t>(running.tokens.size())) return;
    const bool must_fit = pool_.free() > 0;
    const bool must_evict = must_fit && pool_.free() == pool_.cached();
    ASSERT_EQ(running.table.grow_to(next + 1), must_fit);
    if (!must_fit) return;
    take(running.table[next], must_evict);
    contents_[static_cast<std::size_t>(running.table[next])] = prefix(running, next + 1);
    if (pick(4) > 0) publish(running);
  }

  // The model forgets what was evicted: the cached block released longest ago.
  void take(BlockId block, bool evicted) {
    const auto was = known_.find(contents_[static_cast<std::size_t>(block)]);
    const bool was_cached = was != known_.end() && was->second == block;
    ASSERT_EQ(was_cached, evicted);
    if (!evicted) return;
    known_.erase(was);
    for (const auto& [tokens, other] : known_) {
      if (pool_.references(other) > 0) continue;
      ASSERT_LT(last_release_[static_cast<std::size_t>(block)], last_release_[static_cast<std::size_t>(other)]);
    }
  }

  void publish(Running& running) {
    for (; running.published < running.table.size(); ++running.published) {
      const std::int32_t at = running.published;
      const BlockId own = running.table[at];
      const BlockId parent = at > 0 ? running.table[at - 1] : PrefixIndex::kNoParent;
      const auto tokens = std::span(running.tokens).subspan(static_cast<std::size_t>(at) * kBlockTokens, kBlockTokens);
      const auto known = index_.insert(parent, running.salt, tokens, own);
      if (!known) {
        ASSERT_FALSE(exact_) << "real keys do not collide";
        return;
      }
      const auto [place, is_new] = known_.emplace(prefix(running, at + 1), own);
      ASSERT_EQ(*known, place->second);
      if (*known != own) running.table.replace(at, *known);
    }
  }

  void finish() {
    if (sequences_.empty()) return;
    const auto at = static_cast<std::size_t>(pick(static_cast<int>(sequences_.size())));
    std::swap(sequences_[at], sequences_.back());
    const BlockTable& table = sequences_.back()->table;
    for (std::int32_t i = table.size() - 1; i >= 0; --i) last_release_[static_cast<std::size_t>(table[i])] = ++clock_;
    sequences_.pop_back();
  }

  void check() {
    std::map<BlockId, int> owners;
    for (const auto& running : sequences_)
      for (std::int32_t i = 0; i < running->table.size(); ++i) {
        ++owners[running->table[i]];
        ASSERT_EQ(contents_[static_cast<std::size_t>(running->table[i])], prefix(*running, i + 1)) << "a block was lost or stolen";
      }
    std::int32_t cached = 0;
    for (const auto& [tokens, block] : known_) cached += owners.contains(block) ? 0 : 1;
    ASSERT_EQ(pool_.free(), kTotal - static_cast<std::int32_t>(owners.size()));
    ASSERT_EQ(pool_.cached(), cached);
    for (const auto& [block, count] : owners) ASSERT_EQ(pool_.references(block), count);
  }

  std::mt19937 random_;
  BlockPool pool_{kTotal};
  PrefixIndex index_;
  std::vector<Prefix> contents_;            // what each block holds
  std::vector<std::uint64_t> last_release_;
  std::map<Prefix, BlockId> known_;
  std::vector<std::unique_ptr<Running>> sequences_;
  std::uint64_t clock_ = 0;
  std::uint64_t hits_ = 0;
  bool exact_;
};

TEST(PrefixIndexStorm, MillionOperationsMatchASimpleModel) {
  IndexStorm storm(11, xxh3_key, true);
  storm.run(1'000'000);
  EXPECT_GT(storm.hits(), 100'000U);
  EXPECT_GT(storm.evictions(), 10'000U);
}

TEST(PrefixIndexStorm, CollisionsNeverGiveAWrongBlock) {
  IndexStorm few(12, colliding_key<16>, false);
  few.run(100'000);
  EXPECT_GT(few.hits(), 100U);
  IndexStorm one(13, colliding_key<1>, false);
  one.run(100'000);
}

}  // namespace
}  // namespace braid::cache
