// Checkpoints of recurrent states: found only where they are, evicted by the pool, and gone with their node.
#include "cache/block_table.h"
#include "cache/prefix_index.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace braid::cache {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t kBlock = 4;

class States : public testing::Test {
 protected:
  static SequenceView view(const Tokens& tokens) { return {{}, tokens, {}}; }

  std::vector<BlockId> match(const Tokens& tokens) {
    std::vector<BlockId> path;
    index_.match(view(tokens), path);
    return path;
  }
  PrefixIndex::StateHit hit(const Tokens& tokens) { return index_.last_state(view(tokens), match(tokens)); }

  // Blocks of all tokens, in the tree and held.
  std::vector<BlockId> publish(const Tokens& tokens) {
    std::vector<BlockId> path;
    BlockId parent = PrefixIndex::kNoParent;
    for (std::size_t begin = 0; begin < tokens.size(); begin += kBlock) {
      const BlockId block = *pool_.allocate();
      if (tokens.size() - begin >= kBlock) {
        parent = *index_.insert(parent, view(Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begin) + kBlock)), begin,
                                block);
      } else {
        index_.insert_partial(parent, view(tokens), begin, block);
      }
      path.push_back(block);
    }
    return path;
  }

  BlockPool pool_{64};
  PrefixIndex index_{pool_, kBlock};
};

TEST_F(States, AreFoundAtTheirPlaceOnly) {
  const auto blocks = publish({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const BlockId early = *pool_.allocate();
  const BlockId late = *pool_.allocate();
  EXPECT_TRUE(index_.put_state(blocks[0], 4, {&early, 1}));
  EXPECT_TRUE(index_.put_state(blocks[2], 2, {&late, 1}));
  EXPECT_FALSE(index_.put_state(blocks[2], 2, {&early, 1})) << "there is one";
  EXPECT_FALSE(index_.put_state(blocks[2], 3, {&early, 1})) << "it has two tokens";
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).tokens, 10);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).state[0], late);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9, 99}).tokens, 4) << "the late one has seen a 10";
  EXPECT_EQ(hit({1, 2, 3, 99}).tokens, 0);
}

// However many blocks begin as its own does.
TEST_F(States, WithinABlockAreFoundByAllThatBeginLikeIt) {
  const auto blocks = publish({1, 2, 3, 4, 5, 6});
  const BlockId state = *pool_.allocate();
  ASSERT_TRUE(index_.put_state(blocks[1], 2, {&state, 1}));
  for (std::int32_t other = 0; other < 20; ++other) publish({1, 2, 3, 4, 5, 6, 100 + other, 8});
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 99}).tokens, 6);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 99}).node, blocks[1]);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 100, 8, 9}).tokens, 6) << "its own block has none";
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 99}).tokens, 0);
  EXPECT_EQ(hit({5, 6}).tokens, 0) << "after other tokens";
  pool_.release(state);
  while (pool_.free() > 0) pool_.allocate();
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 99}).tokens, 0) << "evicted";
}

TEST_F(States, WithinABlockAreOfOneScopeAndItsImages) {
  const Tokens tokens = {1, 2, 3};
  const std::vector<MediaSpan> one = {{1, 2, {7, 1}}};
  const std::vector<MediaSpan> other = {{1, 2, {7, 2}}};
  const auto block = *pool_.allocate();
  const auto state = *pool_.allocate();
  ASSERT_EQ(index_.insert_partial(PrefixIndex::kNoParent, {{"adapter", {}}, tokens, one}, 0, block), block);
  ASSERT_TRUE(index_.put_state(block, 2, {&state, 1}));
  EXPECT_EQ(index_.last_state({{"adapter", {}}, tokens, one}, {}).tokens, 2);
  EXPECT_EQ(index_.last_state({{"adapter", {}}, tokens, other}, {}).tokens, 0);
  EXPECT_EQ(index_.last_state({{"adapter", {}}, tokens, {}}, {}).tokens, 0);
  EXPECT_EQ(index_.last_state({{}, tokens, one}, {}).tokens, 0);
}

// Every key is the same.
TEST_F(States, WithinABlockAreComparedNotOnlyDigested) {
  PrefixIndex colliding(pool_, kBlock, [](std::span<const std::byte>) { return PrefixKey{1, 1}; });
  const Tokens tokens = {1, 2, 3};
  const auto block = *pool_.allocate();
  const auto state = *pool_.allocate();
  colliding.insert_partial(PrefixIndex::kNoParent, view(tokens), 0, block);
  ASSERT_TRUE(colliding.put_state(block, 2, {&state, 1}));
  const Tokens others = {1, 3, 3};
  EXPECT_EQ(colliding.last_state(view(others), {}).tokens, 0);
  const Tokens same = {1, 2, 9};
  EXPECT_EQ(colliding.last_state(view(same), {}).tokens, 2);
}

TEST_F(States, OfABlockThatBecomesFullStay) {
  const Tokens tokens = {1, 2, 3, 4, 5, 6};
  const auto blocks = publish(tokens);
  const std::vector<BlockId> state = {*pool_.allocate(), *pool_.allocate()};
  ASSERT_TRUE(index_.put_state(blocks[1], 2, state));
  const Tokens full = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(index_.insert(blocks[0], view(full), 4, blocks[1]), blocks[1]);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9}).tokens, 6);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 99}).tokens, 6) << "the branch is in the middle of a block";
  // Somebody else's block of the same tokens stands for them, and takes the states over that it lacks.
  const BlockId other = *pool_.allocate();
  index_.insert_partial(blocks[0], view({1, 2, 3, 4, 5, 99}), 4, other);
  const BlockId more = *pool_.allocate();
  ASSERT_TRUE(index_.put_state(other, 1, {&more, 1}));
  EXPECT_EQ(index_.insert(blocks[0], view(full), 4, other), blocks[1]);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 77}).tokens, 5);
}

TEST_F(States, GoWholeWhenOneOfTheirBlocksIsEvicted) {
  const auto blocks = publish({1, 2, 3, 4});
  const std::vector<BlockId> state = {*pool_.allocate(), *pool_.allocate()};
  ASSERT_TRUE(index_.put_state(blocks[0], 4, state));
  for (const BlockId block : state) pool_.release(block);
  EXPECT_EQ(pool_.cached(), 2);
  while (pool_.free() > 1) pool_.allocate();
  EXPECT_EQ(pool_.cached(), 0) << "one is handed out, the other is empty";
  EXPECT_EQ(hit({1, 2, 3, 4, 5}).tokens, 0);
  EXPECT_EQ(match({1, 2, 3, 4, 5}).size(), 1U) << "the node stays";
}

TEST_F(States, GoWithTheirNode) {
  const auto blocks = publish({1, 2, 3, 4});
  const BlockId state = *pool_.allocate();
  ASSERT_TRUE(index_.put_state(blocks[0], 4, {&state, 1}));
  pool_.release(blocks[0]);
  pool_.release(state);
  while (pool_.free() > 1) pool_.allocate();
  EXPECT_EQ(pool_.cached(), 0);
  EXPECT_EQ(hit({1, 2, 3, 4, 5}).tokens, 0);
}

TEST_F(States, TakeNoMoreThanTheirBlocks) {
  const auto blocks = publish({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  index_.bound_states(4);
  std::vector<std::vector<BlockId>> states;
  const auto put = [&](std::size_t node, std::int32_t offset) {
    states.push_back({*pool_.allocate(), *pool_.allocate()});
    return index_.put_state(blocks[node], offset, states.back());
  };
  EXPECT_TRUE(put(0, 4));
  EXPECT_TRUE(put(1, 4));
  EXPECT_EQ(hit({1, 2, 3, 4, 99}).tokens, 4) << "found: used after the other one";
  EXPECT_TRUE(put(2, 2));
  EXPECT_EQ(index_.state_blocks(), 4);
  EXPECT_EQ(index_.states_dropped(), 1U);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 99}).tokens, 4) << "the one that was used longest ago is gone";
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).tokens, 10);
  for (const BlockId block : states[1]) pool_.release(block);
  EXPECT_EQ(pool_.cached(), 0) << "nobody finds its blocks again";
  index_.bound_states(3);
  EXPECT_EQ(index_.state_blocks(), 2);
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).tokens, 10) << "found last";
  index_.bound_states(1);
  EXPECT_EQ(index_.state_blocks(), 0);
  EXPECT_FALSE(put(0, 4)) << "one takes two";
  EXPECT_EQ(index_.states_dropped(), 3U);
}

TEST_F(States, ThatAreFoundButNotUsedYetKeepTheirTurn) {
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto blocks = publish(tokens);
  index_.bound_states(2);
  const auto put = [&](std::size_t node, std::int32_t offset) {
    const BlockId state = *pool_.allocate();
    ASSERT_TRUE(index_.put_state(blocks[node], offset, {&state, 1}));
  };
  put(0, 4);
  put(1, 4);
  const Tokens early = {1, 2, 3, 4, 99};
  EXPECT_EQ(index_.unused_state(view(early), match(early)).tokens, 4);
  put(2, 2);
  EXPECT_EQ(hit(early).tokens, 0) << "that has gone";
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 99}).tokens, 8);
}

TEST_F(States, OfABlockThatBecomesFullKeepTheirTurn) {
  const Tokens tokens = {1, 2, 3, 4, 5, 6};
  const auto blocks = publish(tokens);
  index_.bound_states(2);
  const BlockId early = *pool_.allocate();
  const BlockId late = *pool_.allocate();
  ASSERT_TRUE(index_.put_state(blocks[1], 2, {&early, 1}));
  ASSERT_TRUE(index_.put_state(blocks[0], 4, {&late, 1}));
  const Tokens full = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(index_.insert(blocks[0], view(full), 4, blocks[1]), blocks[1]);
  const BlockId last = *pool_.allocate();
  ASSERT_TRUE(index_.put_state(blocks[1], 4, {&last, 1}));
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 77}).tokens, 4) << "the first one has gone, not the second";
  EXPECT_EQ(hit({1, 2, 3, 4, 5, 6, 7, 8, 9}).tokens, 8);
}

// Random sequences over few tokens, whose states are put anywhere, under a pool that is always too small. What a hit names was put for the
// very tokens before it and has not been handed out since, and it is the longest such beginning.
class StatesStorm {
 public:
  // Half of the tokens are others than 0. `total`: of the pool.
  StatesStorm(std::uint32_t seed, int others, std::int32_t total) : random_(seed), others_(others), pool_(total) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      const Tokens tokens = sequence();
      if (pick(2) == 0) look_up(tokens);
      compute(tokens);
    }
    EXPECT_GT(hits_, 0);
  }

  int behind_many() const { return behind_many_; }

 private:
  static constexpr std::size_t kStateBlocks = 2;

  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }

  Tokens sequence() {
    Tokens tokens(static_cast<std::size_t>(1 + pick(16)));
    for (std::int32_t& token : tokens) token = pick(2) * (1 + pick(others_));
    return tokens;
  }

  // A state that was put into the index for these tokens. It is found as long as none of its blocks is handed out again; surely where its
  // node and those before it have not been either.
  struct Put {
    Tokens tokens;
    std::vector<BlockId> state;
    std::vector<BlockId> path;  // to its node; empty: one of these was handed out
    int siblings = 0;           // blocks that were published behind its node's parent since
  };

  BlockId take() {
    const BlockId block = *pool_.allocate();
    std::erase_if(puts_, [&](const Put& put) { return std::ranges::count(put.state, block) > 0; });
    for (Put& put : puts_)
      if (std::ranges::count(put.path, block) > 0) put.path.clear();
    return block;
  }

  static bool begins_with(const Tokens& tokens, const Tokens& beginning) {
    return beginning.size() <= tokens.size() && std::ranges::equal(beginning, std::span(tokens).first(beginning.size()));
  }

  void look_up(const Tokens& tokens) {
    std::vector<BlockId> path;
    const SequenceView view{{}, tokens, {}};
    index_.match(view, path);
    const auto [length, state, node] = index_.last_state(view, path);
    hits_ += length > 0 ? 1 : 0;
    bool is_right = length == 0;
    for (const Put& put : puts_) {
      const std::size_t size = put.tokens.size();
      if (!begins_with(tokens, put.tokens)) continue;
      ASSERT_TRUE(put.path.empty() || std::cmp_less_equal(size, length)) << "a state was missed";
      if (!std::cmp_equal(size, length) || !std::ranges::equal(put.state, state)) continue;
      is_right = true;
      if (put.siblings > 16) ++behind_many_;
    }
    ASSERT_TRUE(is_right) << "a state of other tokens, or one that is gone";
  }

  // Publishes the sequence, puts states at some of its places, and lets go of all of it.
  void compute(const Tokens& tokens) {
    std::vector<BlockId> held;
    std::vector<BlockId> path;
    for (std::size_t begin = 0; begin < tokens.size(); begin += kBlock) {
      const BlockId parent = path.empty() ? PrefixIndex::kNoParent : path.back();
      const std::size_t end = std::min(tokens.size(), begin + kBlock);
      const Tokens known(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end));
      const BlockId node = take();
      path.push_back(node);
      if (end - begin == kBlock) {
        if (pick(2) == 0) {  // in two parts, with a state after the first one
          const Tokens part(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begin) + 1 + pick(kBlock - 1));
          index_.insert_partial(parent, {{}, part, {}}, begin, node);
          put(path, begin, part, held);
        }
        const BlockId standing = index_.insert(parent, {{}, known, {}}, begin, node).value();
        pool_.share(standing);
        pool_.release(node);
        path.back() = standing;
        if (standing != node) stand_in(node, path);
      } else {
        index_.insert_partial(parent, {{}, known, {}}, begin, node);
      }
      count_siblings(path);
      held.push_back(path.back());
      if (pick(3) == 0) put(path, begin, known, held);
    }
    for (auto block = held.rbegin(); block != held.rend(); ++block) pool_.release(*block);
  }

  void count_siblings(const std::vector<BlockId>& path) {
    for (Put& put : puts_)
      if (put.path.size() == path.size() && std::equal(path.begin(), path.end() - 1, put.path.begin())) ++put.siblings;
  }

  // States of the node hang at the last of the path from now on, or are forgotten where that has one.
  void stand_in(BlockId node, const std::vector<BlockId>& path) {
    const auto has_one = [&](const Put& put) {
      const auto hangs_there = [&](const Put& other) { return other.path == path && other.tokens == put.tokens; };
      return !put.path.empty() && put.path.back() == node && std::ranges::any_of(puts_, hangs_there);
    };
    std::vector<Put> left;
    std::ranges::remove_copy_if(puts_, std::back_inserter(left), has_one);
    puts_ = std::move(left);
    for (Put& put : puts_)
      if (!put.path.empty() && put.path.back() == node) put.path = path;
  }

  void put(const std::vector<BlockId>& path, std::size_t begin, const Tokens& known, std::vector<BlockId>& held) {
    std::vector<BlockId> state;
    for (std::size_t i = 0; i < kStateBlocks; ++i) state.push_back(take());
    if (index_.put_state(path.back(), static_cast<std::int32_t>(known.size() - begin), state)) puts_.push_back({known, state, path});
    held.insert(held.end(), state.begin(), state.end());
  }

  std::mt19937 random_;
  const int others_;
  BlockPool pool_;
  PrefixIndex index_{pool_, kBlock};
  std::vector<Put> puts_;
  int hits_ = 0;
  int behind_many_ = 0;  // hits of states whose node has more siblings that are newer than the index looks at for a common beginning
};

TEST(StatesStorm, HitsAreStatesOfTheVeryTokens) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) StatesStorm(seed, 1, 24).run(5000);
}

TEST(StatesStorm, HitsAreFoundBehindManySiblings) {
  StatesStorm storm(21, 40, 400);
  storm.run(5000);
  EXPECT_GT(storm.behind_many(), 100);
}

}  // namespace
}  // namespace braid::cache
