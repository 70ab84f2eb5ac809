// Checkpoints of recurrent states: found only where they are, evicted by the pool, and gone with their node.
#include "cache/block_table.h"
#include "cache/prefix_index.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <optional>
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

  BlockPool pool_{16};
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
  explicit StatesStorm(std::uint32_t seed) : random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      const Tokens tokens = sequence();
      if (pick(2) == 0) look_up(tokens);
      compute(tokens);
    }
    EXPECT_GT(hits_, 0);
  }

 private:
  static constexpr std::size_t kStateBlocks = 2;

  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }

  Tokens sequence() {
    Tokens tokens(static_cast<std::size_t>(1 + pick(16)));
    for (std::int32_t& token : tokens) token = pick(2);
    return tokens;
  }

  // A state that was put into the index for these tokens. It is found as long as none of its blocks is handed out again; surely where its
  // node has not been either.
  struct Put {
    Tokens tokens;
    std::vector<BlockId> state;
    std::optional<BlockId> node;
  };

  BlockId take() {
    const BlockId block = *pool_.allocate();
    std::erase_if(puts_, [&](const Put& put) { return std::ranges::count(put.state, block) > 0; });
    for (Put& put : puts_)
      if (put.node == block) put.node.reset();
    return block;
  }

  void look_up(const Tokens& tokens) {
    std::vector<BlockId> path;
    const SequenceView view{{}, tokens, {}};
    index_.match(view, path);
    const auto [length, state] = index_.last_state(view, path);
    hits_ += length > 0 ? 1 : 0;
    bool is_right = length == 0;
    for (const Put& put : puts_) {
      const std::size_t size = put.tokens.size();
      if (size > tokens.size() || !std::ranges::equal(put.tokens, std::span(tokens).first(size))) continue;
      is_right = is_right || (std::cmp_equal(size, length) && put.state == std::vector<BlockId>(state.begin(), state.end()));
      const std::size_t place = (size - 1) / kBlock;
      const bool is_there = place < path.size() && put.node == path[place];
      ASSERT_TRUE(!is_there || std::cmp_less_equal(size, length)) << "a state was missed";
    }
    ASSERT_TRUE(is_right) << "a state of other tokens, or one that is gone";
  }

  // Publishes the sequence, puts states at some of its places, and lets go of all of it.
  void compute(const Tokens& tokens) {
    std::vector<BlockId> held;
    BlockId parent = PrefixIndex::kNoParent;
    for (std::size_t begin = 0; begin < tokens.size(); begin += kBlock) {
      const std::size_t end = std::min(tokens.size(), begin + kBlock);
      const Tokens known(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end));
      BlockId node = take();
      if (end - begin == kBlock) {
        if (pick(2) == 0) {  // in two parts, with a state after the first one
          const Tokens part(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(begin) + 1 + pick(kBlock - 1));
          index_.insert_partial(parent, {{}, part, {}}, begin, node);
          put(node, begin, part, held);
        }
        const BlockId standing = index_.insert(parent, {{}, known, {}}, begin, node).value();
        pool_.share(standing);
        pool_.release(node);
        node = standing;
      } else {
        index_.insert_partial(parent, {{}, known, {}}, begin, node);
      }
      held.push_back(node);
      if (pick(3) == 0) put(node, begin, known, held);
      parent = node;
    }
    for (auto block = held.rbegin(); block != held.rend(); ++block) pool_.release(*block);
  }

  void put(BlockId node, std::size_t begin, const Tokens& known, std::vector<BlockId>& held) {
    std::vector<BlockId> state;
    for (std::size_t i = 0; i < kStateBlocks; ++i) state.push_back(take());
    if (index_.put_state(node, static_cast<std::int32_t>(known.size() - begin), state)) puts_.push_back({known, state, node});
    held.insert(held.end(), state.begin(), state.end());
  }

  std::mt19937 random_;
  BlockPool pool_{24};
  PrefixIndex index_{pool_, kBlock};
  std::vector<Put> puts_;
  int hits_ = 0;
};

TEST(StatesStorm, HitsAreStatesOfTheVeryTokens) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) StatesStorm(seed).run(5000);
}

}  // namespace
}  // namespace braid::cache
