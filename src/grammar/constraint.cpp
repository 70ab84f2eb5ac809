#include <grammar/constraint.h>
#include <grammar/grammar.h>
#include <grammar/threads.h>
#include <grammar/token_walk.h>

#include <algorithm>
#include <utility>

namespace braid::grammar {
namespace {

class AutomatonState final : public ConstraintState {
 public:
  explicit AutomatonState(std::shared_ptr<const AutomatonConstraint> constraint)
      : constraint_(std::move(constraint)), threads_(constraint_->automaton()) {
    threads_.push_state(constraint_->automaton().start, 0, kBottom);
  }

  void fill_mask(std::span<std::uint32_t> allowed) override {
    std::fill(allowed.begin(), allowed.end(), 0U);
    if (!ended_) {
      const std::size_t count = threads_.top().size();
      for (std::size_t i = 0; i < count; ++i)
        if (const Thread thread = threads_.top_at(i); !thread.covered) allow(thread, allowed);
    }
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

  void allow(const Thread& thread, std::span<std::uint32_t> allowed) {
    const Automaton& automaton = constraint_->automaton();
    const State& state = automaton.states[thread.state];
    const StateMask& mask = constraint_->masks().of(thread.state, spare_);
    Loop loop{0, 0, kUnbounded, 0};
    if (state.loop != kNoState) loop = automaton.loops[state.loop];
    const std::uint32_t rounds = loop.max == kUnbounded ? kUnbounded : loop.max - thread.count;
    mask.allow(allowed, rounds);
    const TokenTrie* tree = mask.remainder_tree();
    if (thread.frame == kBottom || tree == nullptr) return;

    threads_.push_return(thread.frame);
    walk_tokens(*tree, 0, first_bytes(automaton, threads_), threads_, ends_, [&](std::uint32_t node) {
      for (const TokenId number : tree->tokens(node)) {
        const StateMask::Remainder& remainder = mask.remainder(number);
        const bool enough = std::uint64_t{thread.count} + remainder.rounds >= loop.min;
        if (enough && remainder.rounds <= rounds) set(allowed, remainder.token);
      }
    });
    threads_.pop();
  }

  std::shared_ptr<const AutomatonConstraint> constraint_;
  Threads threads_;
  std::vector<std::uint32_t> ends_;
  std::unique_ptr<const StateMask> spare_;
  bool ended_ = false;
};

}  // namespace

AutomatonConstraint::AutomatonConstraint(std::shared_ptr<const Vocabulary> vocabulary, Automaton automaton,
                                         std::shared_ptr<MaskBudget> budget)
    : vocabulary_(std::move(vocabulary)),
      automaton_(std::move(automaton)),
      masks_(automaton_, vocabulary_->trie(), std::move(budget)) {
  masks_.prepare();
}

std::unique_ptr<ConstraintState> AutomatonConstraint::start(std::span<const TokenId> accepted) const {
  auto state = std::make_unique<AutomatonState>(shared_from_this());
  for (const TokenId token : accepted) state->accept(token);
  return state;
}

}  // namespace braid::grammar
