// Random sequences whose layers fall into groups and carry states, against a simple model: what each block of the pool was last given. What is
// found is always of the very tokens, and what nothing was taken from is found.
#include "cache/prefix_index.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace braid::cache {
namespace {

using Tokens = std::vector<std::int32_t>;

class GroupsStorm {
 public:
  // `others`: so many tokens are not 0. `most_states`: that are kept at once.
  GroupsStorm(std::uint32_t seed, std::size_t most_states, std::int32_t total = 40, int others = 1)
      : random_(seed), most_states_(most_states), total_(total), others_(others), pool_(total, kGroups) {
    index_.bound_states(static_cast<std::int32_t>(most_states_) * kStateBlocks + 1);
  }

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      operate();
      ASSERT_LE(index_.state_blocks(), static_cast<std::int32_t>(most_states_) * kStateBlocks);
    }
    while (!sequences_.empty()) finish();
    EXPECT_EQ(pool_.free(), total_);
    EXPECT_GT(found_blocks_, 0U);
    EXPECT_GT(found_handles_, 0U);
    EXPECT_GT(lost_handles_, 0U);
    EXPECT_GT(found_states_, 0U);
    EXPECT_GT(pool_.evictions(), 0U);
    EXPECT_GT(found_within_, 0U);
    EXPECT_EQ(index_.states_dropped() > 0, std::cmp_less(most_states_, total_ / kStateBlocks));
  }

 private:
  static constexpr std::int32_t kBlock = 3;
  static constexpr std::int32_t kGroups = 3;  // two that see everything, and one with a window
  static constexpr std::int32_t kAnchors = 2;
  static constexpr std::int32_t kStateBlocks = 2;
  static constexpr std::int32_t kState = kGroups;  // and the parts behind it

  // What a block was last given: by which group, or as which part of a state, and after which tokens.
  using Content = std::pair<std::int32_t, Tokens>;
  using Place = std::array<BlockId, kGroups>;

  struct Running {
    Tokens tokens;
    std::vector<Place> places;  // full blocks; kNoHandle where one was given up
    std::vector<BlockId> more;  // of states, and blocks that are not full
    bool in_tree = true;
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }
  static Tokens first(const Tokens& tokens, std::size_t count) {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  Running& any() { return sequences_[static_cast<std::size_t>(pick(static_cast<int>(sequences_.size())))]; }

  void operate() {
    const int choice = pick(16);
    if (choice < 5) return start();
    if (sequences_.empty()) return;
    if (choice < 8) return finish();
    if (choice == 8) return pass_window(any());
    if (choice == 9) return keep_state(any());
    if (choice == 10) return publish_tail(any());
    compute(any());
  }

  BlockId take(std::int32_t group, Tokens after) {
    const BlockId block = *pool_.allocate(std::min(group, kGroups - 1));
    contents_[static_cast<std::size_t>(block)] = Content{group, std::move(after)};
    ++taken_[static_cast<std::size_t>(block)];
    return block;
  }
  // Blocks as they are, to be told from what they are once they have been taken again.
  using Stamps = std::vector<std::pair<BlockId, std::uint64_t>>;
  Stamps stamps(std::span<const BlockId> blocks) const {
    Stamps all;
    for (const BlockId block : blocks) all.emplace_back(block, taken_[static_cast<std::size_t>(block)]);
    return all;
  }
  bool is_untouched(const Stamps& all) const {
    return std::ranges::all_of(all, [&](const auto& stamp) { return taken_[static_cast<std::size_t>(stamp.first)] == stamp.second; });
  }
  bool has(BlockId block, std::int32_t group, const Tokens& after) const {
    const auto& content = contents_[static_cast<std::size_t>(block)];
    return content && content->first == group && content->second == after;
  }
  // No block of the groups that see everything was taken since these were published.
  bool is_whole(const Tokens& after) const {
    const auto known = known_.find(after);
    return known != known_.end() && is_untouched(known->second);
  }

  void start() {
    if (sequences_.size() == 6) return finish();
    Running running;
    running.tokens.resize(static_cast<std::size_t>(1 + pick(5 * kBlock)));
    for (std::int32_t& token : running.tokens) token = pick(8) < std::min(others_, 4) ? 1 + pick(others_) : 0;
    const SequenceView view{{}, running.tokens, {}};
    std::vector<BlockId> path;
    index_.match(view, path);
    for (std::size_t i = 0; i < path.size(); ++i) {
      const Tokens after = first(running.tokens, (i + 1) * kBlock);
      Place place;
      for (std::int32_t group = 0; group < kGroups; ++group) {
        const BlockId block = place[static_cast<std::size_t>(group)] = index_.handle(path[i], group);
        ASSERT_TRUE(block != PrefixIndex::kNoHandle || group >= kAnchors) << "of no use to anybody";
        if (block == PrefixIndex::kNoHandle) continue;
        ASSERT_TRUE(has(block, group, after)) << "a block of other tokens, or of another group";
        found_handles_ += group >= kAnchors ? 1 : 0;
      }
      lost_handles_ += place.back() == PrefixIndex::kNoHandle ? 1 : 0;
      running.places.push_back(place);
    }
    found_blocks_ += path.size();
    std::size_t whole = 0;
    while ((whole + 1) * kBlock <= running.tokens.size() && is_whole(first(running.tokens, (whole + 1) * kBlock))) ++whole;
    ASSERT_GE(path.size(), whole) << "a known block was not found";
    look_for_state(running, view, path);
    for (const Place& place : running.places)
      for (const BlockId block : place)
        if (block != PrefixIndex::kNoHandle) pool_.share(block);
    sequences_.push_back(std::move(running));
  }

  void look_for_state(Running& running, const SequenceView& view, const std::vector<BlockId>& path) {
    const auto [tokens, state, node] = index_.last_state(view, path);
    for (std::size_t i = 0; tokens > 0 && i < state.size(); ++i)
      ASSERT_TRUE(has(state[i], kState + static_cast<std::int32_t>(i), first(running.tokens, static_cast<std::size_t>(tokens))))
          << "a state of other tokens";
    found_states_ += tokens > 0 ? 1 : 0;
    found_within_ += tokens % kBlock > 0 ? 1 : 0;
    for (std::size_t size = running.tokens.size(); size > static_cast<std::size_t>(tokens); --size) {  // no later one is there
      const Tokens after = first(running.tokens, size);
      const auto put = states_.find(after);
      ASSERT_FALSE(put != states_.end() && is_untouched(put->second) && is_recent(after)) << "a state was missed";
    }
    for (const BlockId block : state) {
      pool_.share(block);
      running.more.push_back(block);
    }
    if (tokens > 0) use(first(running.tokens, static_cast<std::size_t>(tokens)));
  }

  // Of the last times that states were put or found, as many as states are kept: these are among the ones that stay.
  void use(const Tokens& after) {
    recent_.push_back(after);
    if (recent_.size() > most_states_) recent_.erase(recent_.begin());
  }
  bool is_recent(const Tokens& after) const { return std::ranges::find(recent_, after) != recent_.end(); }

  // The next block of all groups.
  void compute(Running& running) {
    const std::size_t begin = running.places.size() * kBlock;
    if (begin + kBlock > running.tokens.size() || pool_.free() < kGroups) return;
    const Tokens after = first(running.tokens, begin + kBlock);
    Place own;
    for (std::int32_t group = 0; group < kGroups; ++group) own[static_cast<std::size_t>(group)] = take(group, after);
    const BlockId parent = running.places.empty() ? PrefixIndex::kNoParent : running.places.back()[0];
    const auto node = running.in_tree ? index_.insert(parent, {{}, after, {}}, begin, own[0]) : std::nullopt;
    running.in_tree = node.has_value();
    if (node) {
      stand_in(own[0], *node);
      for (std::int32_t group = 1; group < kGroups; ++group) {
        BlockId& block = own[static_cast<std::size_t>(group)];
        stand_in(block, index_.attach(*node, group, block));
        ASSERT_TRUE(has(block, group, after)) << "another block stands for it that is none";
      }
      ASSERT_TRUE(has(*node, 0, after));
      std::vector<BlockId> all(own.begin(), own.begin() + kAnchors);  // and what it hangs below
      for (const Place& place : running.places) all.insert(all.end(), place.begin(), place.begin() + kAnchors);
      known_[after] = stamps(all);
    }
    running.places.push_back(own);
  }

  void stand_in(BlockId& own, BlockId other) {
    if (own == other) return;
    pool_.share(other);
    pool_.release(own);
    own = other;
  }

  void pass_window(Running& running) {
    for (Place& place : std::span(running.places).first(static_cast<std::size_t>(pick(static_cast<int>(running.places.size()) + 1))))
      if (const BlockId block = std::exchange(place.back(), PrefixIndex::kNoHandle); block != PrefixIndex::kNoHandle) pool_.release(block);
  }

  void keep_state(Running& running) {
    if (running.places.empty() || pool_.free() < kStateBlocks) return;
    const std::size_t place = static_cast<std::size_t>(pick(static_cast<int>(running.places.size())));
    put_state(running, running.places[place][0], kBlock, first(running.tokens, (place + 1) * kBlock));
  }

  void put_state(Running& running, BlockId node, std::int32_t offset, const Tokens& after) {
    std::vector<BlockId> state;
    for (std::int32_t i = 0; i < kStateBlocks; ++i) state.push_back(take(kState + i, after));
    running.more.insert(running.more.end(), state.begin(), state.end());
    if (!index_.put_state(node, offset, state)) return;
    use(after);
    state.push_back(node);
    const std::size_t places = after.size() / kBlock;
    for (const Place& place : std::span(running.places).first(places)) state.insert(state.end(), place.begin(), place.begin() + kAnchors);
    states_[after] = stamps(state);
  }

  // What is there of the next block, with the state behind it.
  void publish_tail(Running& running) {
    const std::size_t begin = running.places.size() * kBlock;
    if (!running.in_tree || begin + 1 >= running.tokens.size() || pool_.free() < 1 + kStateBlocks) return;
    const Tokens after = first(running.tokens, std::min(running.tokens.size(), begin + 1 + static_cast<std::size_t>(pick(kBlock - 1))));
    const BlockId parent = running.places.empty() ? PrefixIndex::kNoParent : running.places.back()[0];
    const BlockId own = take(0, after);
    index_.insert_partial(parent, {{}, after, {}}, begin, own);
    put_state(running, own, static_cast<std::int32_t>(after.size() - begin), after);
    running.more.push_back(own);
  }

  void finish() {
    if (sequences_.empty()) return;
    std::swap(any(), sequences_.back());
    Running& running = sequences_.back();
    for (; !running.more.empty(); running.more.pop_back()) pool_.release(running.more.back());
    for (; !running.places.empty(); running.places.pop_back())
      for (std::int32_t i = 0, group = pick(kGroups); i < kGroups; ++i, group = (group + 1) % kGroups)  // any may be evicted first
        if (const BlockId block = running.places.back()[static_cast<std::size_t>(group)]; block != PrefixIndex::kNoHandle)
          pool_.release(block);
    sequences_.pop_back();
  }

  std::mt19937 random_;
  const std::size_t most_states_;
  const std::int32_t total_;
  const int others_;
  BlockPool pool_;
  PrefixIndex index_{pool_, kBlock, xxh3_key, {}, {kGroups, kAnchors}};
  std::vector<std::optional<Content>> contents_ = std::vector<std::optional<Content>>(static_cast<std::size_t>(total_));
  std::vector<std::uint64_t> taken_ = std::vector<std::uint64_t>(static_cast<std::size_t>(total_));  // how often each was
  std::map<Tokens, Stamps> known_;   // full blocks of the groups that see everything
  std::map<Tokens, Stamps> states_;  // and their nodes with what is before these
  std::vector<Tokens> recent_;       // what came before the states that were used last
  std::vector<Running> sequences_;
  std::uint64_t found_blocks_ = 0;
  std::uint64_t found_handles_ = 0;
  std::uint64_t lost_handles_ = 0;
  std::uint64_t found_states_ = 0;
  std::uint64_t found_within_ = 0;  // of these, states within a block
};

TEST(GroupsStorm, MillionOperationsMatchASimpleModel) {
  for (std::uint32_t seed = 0; seed < 4; ++seed) GroupsStorm(seed, seed % 2 == 0 ? 20 : 1 + 2 * seed).run(250'000);
}

// More than are looked at for a common beginning.
TEST(GroupsStorm, WithManyBlocksBehindOneParent) {
  for (const std::size_t most_states : {30U, 300U}) GroupsStorm(4, most_states, 600, 40).run(100'000);
}

}  // namespace
}  // namespace braid::cache
