// What one state of an automaton says about the next token, whatever called its rule.
#pragma once

#include <grammar/automaton.h>
#include <grammar/token_trie.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::grammar {

// A place of the vocabulary's tree where the state's rule may return with bytes of a token left over.
struct ReturnNode {
  std::uint32_t node = 0;
  std::uint32_t count = 0;  // how often the rule, when a loop, has gone round until then
};

// Immutable.
class StateMask {
 public:
  // Looks at the whole tree where the state can read much of it: about 20 ns a node.
  StateMask(const Automaton& automaton, const TokenTrie& trie, StateId state);

  // Allows the tokens that the state's rule reads to their end. `rounds` is how often a loop may still go round.
  void allow(std::span<std::uint32_t> allowed, std::uint32_t rounds) const;
  std::span<const ReturnNode> returns() const { return returns_; }

  std::size_t memory_bytes() const;
  std::size_t nodes_walked() const { return nodes_walked_; }

 private:
  // The tokens that need at most `rounds`, as a bit mask or, when few, among those of the levels before it.
  struct Level {
    std::uint32_t rounds = 0;
    std::vector<std::uint32_t> bits;  // empty: only the list below counts
    std::size_t tokens_end = 0;       // of tokens_
  };
  struct CostedToken {
    std::uint32_t rounds;
    TokenId token;
  };
  void add_levels(std::size_t vocab_size);

  std::vector<CostedToken> tokens_;  // by rounds; dropped where one mask says all
  std::vector<Level> levels_;
  std::vector<ReturnNode> returns_;
  std::size_t nodes_walked_ = 0;
};

// Memory for masks, shared by the constraints of a model.
struct MaskBudget {
  std::atomic<std::size_t> bytes_left;
};

// The masks of an automaton's states, each made when it is first asked for. Any thread; no locks: of two threads that make the same mask
// one throws its own away.
class StateMasks {
 public:
  StateMasks(const Automaton& automaton, const TokenTrie& trie, std::shared_ptr<MaskBudget> budget);
  ~StateMasks();
  StateMasks(const StateMasks&) = delete;
  StateMasks& operator=(const StateMasks&) = delete;

  // `spare` keeps the mask alive when the budget is spent.
  const StateMask& of(StateId state, std::unique_ptr<const StateMask>& spare) const;

  // Makes the masks that take long, within a bound of work.
  void prepare() const;

 private:
  const Automaton& automaton_;
  const TokenTrie& trie_;
  std::shared_ptr<MaskBudget> budget_;
  mutable std::atomic<std::size_t> spent_{0};
  std::unique_ptr<std::atomic<const StateMask*>[]> masks_;  // by state
};

}  // namespace braid::grammar
