#include "grammar/state_mask.h"

#include "grammar/follow.h"
#include "grammar/grammar.h"
#include "grammar/token_walk.h"

#include <algorithm>
#include <array>

namespace braid::grammar {
namespace {

constexpr std::size_t kFewTokens = 1024;           // fewer are kept as a list
constexpr std::size_t kWideState = 20;             // first bytes of states that are prepared first
constexpr std::size_t kPrepareNodes = 20'000'000;  // tree nodes walked in preparing one constraint
constexpr std::size_t kNodesOfAnyState = 100;      // what a state costs besides
constexpr std::array<std::uint32_t, 11> kLevelRounds = {1, 2, 3, 4, 5, 6, 8, 10, 13, 17, kUnbounded};

void set(std::span<std::uint32_t> bits, TokenId token) {
  bits[static_cast<std::size_t>(token) / 32] |= 1U << (static_cast<unsigned>(token) % 32);
}

}  // namespace

StateMask::StateMask(const Automaton& automaton, const TokenTrie& trie, StateId state, const std::bitset<256>& follow) {
  Threads threads(automaton, Threads::Scope::kWithin);
  std::vector<std::uint32_t> ends;
  std::vector<std::string> remainders;
  const bool loop = automaton.states[state].loop != kNoState;
  threads.push_state(state, 0, kBottom);
  threads.take_widest();
  std::uint8_t first = 0;  // byte of the tokens below the node
  nodes_walked_ = walk_tokens(trie, 0, first_bytes(automaton, threads), threads, ends, [&](std::uint32_t node) {
    const std::uint32_t on_return = threads.returned() ? threads.return_count() : kUnbounded;
    const std::size_t others = remainders.size();
    if (threads.returned()) add_remainders(trie, node, on_return, follow, remainders);
    if (threads.size() == 2) first = trie.byte(node);
    add_to_crowd(first, threads.take_widest(), remainders.size() > others);
    if (trie.tokens(node).empty()) return;
    std::uint32_t rounds = loop ? on_return : 0;
    if (loop)
      for (const Thread& thread : threads.top()) rounds = std::min(rounds, threads.base_count(thread));
    for (const TokenId token : trie.tokens(node)) tokens_.push_back({rounds, token});
  });
  deepest_ = threads.deepest();
  merge_crowds();
  if (!remainders.empty()) remainder_tree_.emplace(remainders);
  add_levels(trie.vocab_size());
}

// Bytes come in ascending order, one after the other.
void StateMask::add_to_crowd(std::uint8_t byte, std::size_t threads, bool remainders) {
  if (crowds_.empty() || crowds_.back().last != byte) crowds_.push_back({byte, byte, 0, false});
  Crowd& crowd = crowds_.back();
  crowd.widest = std::max(crowd.widest, static_cast<std::uint8_t>(threads));
  widest_ = std::max(widest_, threads);
  crowd.remainders = crowd.remainders || remainders;
}

// Neighbours that are alike become one.
void StateMask::merge_crowds() {
  std::size_t kept = 0;
  for (const Crowd& crowd : crowds_) {
    Crowd* before = kept > 0 ? &crowds_[kept - 1] : nullptr;
    if (before != nullptr && before->last + 1 == crowd.first && before->widest == crowd.widest && before->remainders == crowd.remainders) {
      before->last = crowd.last;
    } else {
      crowds_[kept++] = crowd;
    }
  }
  crowds_.resize(kept);
  crowds_.shrink_to_fit();
}

// The bytes below `node`, where the rule has returned, are for its caller.
void StateMask::add_remainders(const TokenTrie& trie, std::uint32_t node, std::uint32_t rounds, const std::bitset<256>& follow,
                               std::vector<std::string>& texts) {
  for (std::uint32_t child = node + 1; child < trie.end(node); child = trie.end(child)) {
    if (!follow[trie.byte(child)]) continue;
    std::string text;
    std::vector<std::uint32_t> ends;  // of the nodes that `text` leads through
    for (std::uint32_t below = child; below < trie.end(child); ++below) {
      for (; !ends.empty() && ends.back() <= below; ends.pop_back()) text.pop_back();
      text += static_cast<char>(trie.byte(below));
      ends.push_back(trie.end(below));
      for (const TokenId token : trie.tokens(below)) {
        texts.push_back(text);
        remainders_.push_back({token, rounds});
      }
    }
  }
}

void StateMask::add_levels(std::size_t vocab_size) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const CostedToken& a, const CostedToken& b) { return a.rounds < b.rounds; });
  const std::uint32_t most = tokens_.empty() ? 0 : tokens_.back().rounds;
  std::size_t end = 0;
  std::vector<std::uint32_t> bits((vocab_size + 31) / 32, 0);
  for (const std::uint32_t rounds : kLevelRounds) {
    const std::size_t begin = end;
    for (; end < tokens_.size() && tokens_[end].rounds <= rounds; ++end) set(bits, tokens_[end].token);
    if (end == begin) continue;
    levels_.push_back({std::min(rounds, most), {}, end});
    if (end > kFewTokens) levels_.back().bits = bits;
  }
  if (levels_.size() == 1 && !levels_.front().bits.empty() && most == 0) tokens_.clear();
  tokens_.shrink_to_fit();
}

void StateMask::allow(std::span<std::uint32_t> allowed, std::uint32_t rounds) const {
  std::size_t listed = 0;
  const auto above = std::find_if(levels_.begin(), levels_.end(), [&](const Level& level) { return level.rounds > rounds; });
  if (above != levels_.begin()) {
    const Level& level = *(above - 1);
    for (std::size_t i = 0; i < level.bits.size(); ++i) allowed[i] |= level.bits[i];
    if (!level.bits.empty()) listed = level.tokens_end;
  }
  for (std::size_t i = listed; i < tokens_.size() && tokens_[i].rounds <= rounds; ++i) set(allowed, tokens_[i].token);
}

std::size_t StateMask::memory_bytes() const {
  std::size_t sum =
      sizeof(*this) + tokens_.size() * sizeof(CostedToken) + remainders_.size() * sizeof(Remainder) + crowds_.size() * sizeof(Crowd);
  if (remainder_tree_) sum += remainder_tree_->memory_bytes();
  for (const Level& level : levels_) sum += sizeof(level) + level.bits.size() * sizeof(std::uint32_t);
  return sum;
}

StateMasks::StateMasks(const Automaton& automaton, const TokenTrie& trie, std::shared_ptr<MaskBudget> budget)
    : automaton_(automaton), trie_(trie), follow_(follow_bytes(automaton)), budget_(std::move(budget)),
      masks_(std::make_unique<std::atomic<const StateMask*>[]>(automaton.states.size())) {}

StateMasks::~StateMasks() {
  for (std::size_t i = 0; i < automaton_.states.size(); ++i) delete masks_[i].load();
  budget_->bytes_left += spent_;
}

const StateMask& StateMasks::of(StateId state, std::unique_ptr<const StateMask>& spare) const {
  if (const std::uint32_t loop = automaton_.states[state].loop; loop != kNoState) state = automaton_.loops[loop].twin;
  std::atomic<const StateMask*>& slot = masks_[state];
  if (const StateMask* mask = slot.load(std::memory_order_acquire)) return *mask;
  spare = std::make_unique<const StateMask>(automaton_, trie_, state, follow_[automaton_.states[state].rule]);
  const std::size_t bytes = spare->memory_bytes();
  std::size_t left = budget_->bytes_left.load();
  do {
    if (left < bytes) return *spare;
  } while (!budget_->bytes_left.compare_exchange_weak(left, left - bytes));
  const StateMask* expected = nullptr;
  if (!slot.compare_exchange_strong(expected, spare.get())) {
    budget_->bytes_left += bytes;
    return *expected;
  }
  spent_ += bytes;
  return *spare.release();
}

// Only states that a byte or a return leads to: a state that is merely called is covered by its caller, unless that only forwards
// to it.
void StateMasks::prepare() const {
  std::vector<bool> entered(automaton_.states.size(), false);
  entered[automaton_.start] = true;
  for (const ByteEdge& edge : automaton_.byte_edges) entered[edge.target] = true;
  for (const CallEdge& edge : automaton_.call_edges) entered[edge.next] = true;
  for (const State& state : automaton_.states)
    if (state.forwards) entered[automaton_.calls(state).front().callee] = true;

  Threads threads(automaton_);
  std::unique_ptr<const StateMask> spare;
  std::size_t walked = 0;
  for (const bool wide : {true, false})
    for (StateId state = 0; state < automaton_.states.size() && walked < kPrepareNodes; ++state) {
      if (!entered[state] && automaton_.states[state].loop == kNoState) continue;
      threads.clear();
      threads.push_state(state, 0, kBottom);
      if ((first_bytes(automaton_, threads).count() >= kWideState) != wide) continue;
      walked += kNodesOfAnyState + of(state, spare).nodes_walked();
    }
}

}  // namespace braid::grammar
