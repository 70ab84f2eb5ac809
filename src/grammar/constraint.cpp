#include "grammar/constraint.h"

#include "grammar/grammar.h"
#include "grammar/threads.h"
#include "grammar/token_walk.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <utility>

namespace braid::grammar {
namespace {

class AutomatonState final : public ConstraintState {
 public:
  explicit AutomatonState(std::shared_ptr<const AutomatonConstraint> constraint)
      : constraint_(std::move(constraint)), threads_(constraint_->automaton()) {
    threads_.push_state(constraint_->automaton().start, 0, kBottom);
  }
  AutomatonState(const AutomatonState& other) : constraint_(other.constraint_), threads_(other.threads_), ended_(other.ended_) {}
  AutomatonState& operator=(const AutomatonState&) = delete;
  ~AutomatonState() override = default;

  std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<AutomatonState>(*this); }

  void fill_mask(std::span<std::uint32_t> allowed) override {
    std::fill(allowed.begin(), allowed.end(), 0U);
    if (!ended_)
      if (const std::bitset<256> near = fill_from_masks(allowed); near.any()) fill_by_walking(near, allowed);
    if (ended_ || threads_.returned())
      for (const TokenId token : constraint_->vocabulary().end_tokens()) set(allowed, token);
  }

  void accept(TokenId token) override {
    const Vocabulary& vocabulary = constraint_->vocabulary();
    if (vocabulary.is_end(token)) ended_ = true;
    if (ended_) return;
    for (const char byte : vocabulary.bytes(token)) {
      threads_.push_byte(static_cast<std::uint8_t>(byte));
      threads_.keep_top();
    }
  }

 private:
  static void set(std::span<std::uint32_t> allowed, TokenId token) {
    allowed[static_cast<std::size_t>(token) / 32] |= 1U << (static_cast<unsigned>(token) % 32);
  }
  static void clear(std::span<std::uint32_t> allowed, TokenId token) {
    allowed[static_cast<std::size_t>(token) / 32] &= ~(1U << (static_cast<unsigned>(token) % 32));
  }

  // The masks know neither the depth of the stack nor how many threads there are besides. Returns the first bytes of tokens that come
  // near the cut-offs, so that accept() might not follow all that the masks allow. The number of threads is not counted but bounded,
  // and not for tokens that return from a rule at several places: with those an answer may still end in an error.
  std::bitset<256> fill_from_masks(std::span<std::uint32_t> allowed) {
    std::array<std::size_t, 257> steps{};  // in the number of threads, by a token's first byte; modulo 2^64
    std::size_t most = 0;
    bool deep = false;
    const std::size_t count = threads_.top().size();
    for (std::size_t i = 0; i < count; ++i) {
      const Thread thread = threads_.top_at(i);
      if (thread.covered) continue;
      const StateMask& mask = constraint_->masks().of(thread.state, spare_);
      const std::size_t returning = allow(thread, mask, allowed);
      most += mask.widest() + returning;
      deep = deep || threads_.depth(thread.frame) + mask.deepest() > Threads::kMaxDepth;
      for (const StateMask::Crowd& crowd : mask.crowds()) {
        const std::size_t threads = crowd.widest + (crowd.remainders ? returning : 0);
        steps[crowd.first] += threads;
        steps[crowd.last + std::size_t{1}] -= threads;
      }
    }
    std::bitset<256> near;
    if (deep) return near.set();
    if (most <= Threads::kMaxThreads) return near;
    std::size_t threads = 0;
    for (std::size_t byte = 0; byte < near.size(); ++byte) near[byte] = (threads += steps[byte]) > Threads::kMaxThreads;
    return near;
  }

  // For tokens that begin with one of `first`. Sees the cut-offs as accept() does, so that the answer is led to its end within them.
  void fill_by_walking(const std::bitset<256>& first, std::span<std::uint32_t> allowed) {
    const TokenTrie& trie = constraint_->vocabulary().trie();
    for (std::uint32_t child = 1; child < trie.end(0); child = trie.end(child))
      if (first[trie.byte(child)])
        for (const TokenId token : trie.tokens_from(child)) clear(allowed, token);
    const std::bitset<256> read = first & first_bytes(constraint_->automaton(), threads_);
    walk_tokens(trie, 0, read, threads_, ends_, [&](std::uint32_t node) {
      if (trie.tokens(node).empty() || !threads_.goes_on()) return;
      for (const TokenId token : trie.tokens(node)) set(allowed, token);
    });
  }

  // Returns the most threads that come of returning to the caller within a token.
  std::size_t allow(const Thread& thread, const StateMask& mask, std::span<std::uint32_t> allowed) {
    const Automaton& automaton = constraint_->automaton();
    const State& state = automaton.states[thread.state];
    Loop loop{0, 0, kUnbounded, 0};
    if (state.loop != kNoState) loop = automaton.loops[state.loop];
    const std::uint32_t rounds = loop.max == kUnbounded ? kUnbounded : loop.max - thread.count;
    mask.allow(allowed, rounds);
    const TokenTrie* tree = mask.remainder_tree();
    if (thread.frame == kBottom || tree == nullptr) return 0;

    threads_.take_widest();
    threads_.push_return(thread.frame);
    walk_tokens(*tree, 0, first_bytes(automaton, threads_), threads_, ends_, [&](std::uint32_t node) {
      for (const TokenId number : tree->tokens(node)) {
        const StateMask::Remainder& remainder = mask.remainder(number);
        const bool enough = std::uint64_t{thread.count} + remainder.rounds >= loop.min;
        if (enough && remainder.rounds <= rounds) set(allowed, remainder.token);
      }
    });
    threads_.pop();
    return threads_.take_widest();
  }

  std::shared_ptr<const AutomatonConstraint> constraint_;
  Threads threads_;
  std::vector<std::uint32_t> ends_;
  std::unique_ptr<const StateMask> spare_;
  bool ended_ = false;
};

}  // namespace

AutomatonConstraint::AutomatonConstraint(std::shared_ptr<const Vocabulary> vocabulary, Automaton automaton,
                                         std::shared_ptr<MaskBudget> budget, std::vector<std::string> left_out)
    : vocabulary_(std::move(vocabulary)), automaton_(std::move(automaton)), masks_(automaton_, vocabulary_->trie(), std::move(budget)),
      left_out_(std::move(left_out)) {
  masks_.prepare();
}

std::unique_ptr<ConstraintState> AutomatonConstraint::start(std::span<const TokenId> accepted) const {
  auto state = std::make_unique<AutomatonState>(shared_from_this());
  for (const TokenId token : accepted) state->accept(token);
  return state;
}

}  // namespace braid::grammar
