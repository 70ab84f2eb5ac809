// What one state of an automaton says about the next token, whatever called its rule.
#pragma once

#include "grammar/automaton.h"
#include "grammar/token_trie.h"

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::grammar {

// Immutable.
class StateMask {
 public:
  // Looks at the whole tree where the state can read much of it: about 20 ns a node. `follow` are the bytes that may come after the
  // state's rule.
  StateMask(const Automaton& automaton, const TokenTrie& trie, StateId state, const std::bitset<256>& follow);

  // Allows the tokens that the state's rule reads to their end. `rounds` is how often a loop may still go round.
  void allow(std::span<std::uint32_t> allowed, std::uint32_t rounds) const;

  // A token that the rule reads only a part of before it returns, and how often the rule, when a loop, has gone round until then.
  struct Remainder {
    TokenId token = 0;
    std::uint32_t rounds = 0;
  };
  // What is left of such tokens for the caller to read: a tree whose "tokens" number the remainders. Null when there are none.
  const TokenTrie* remainder_tree() const { return remainder_tree_ ? &*remainder_tree_ : nullptr; }
  const Remainder& remainder(TokenId number) const { return remainders_[static_cast<std::size_t>(number)]; }

  // The most threads that the rule alone makes while it reads a token that begins with one of the bytes, and whether some of these
  // tokens have remainders.
  struct Crowd {
    std::uint8_t first = 0;
    std::uint8_t last = 0;  // inclusive
    std::uint8_t widest = 0;
    bool remainders = false;
  };
  std::span<const Crowd> crowds() const { return crowds_; }  // by first byte; disjoint
  std::size_t widest() const { return widest_; }             // of them
  // How deep the calls within a token have to nest.
  std::uint32_t deepest() const { return deepest_; }

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
  void add_to_crowd(std::uint8_t byte, std::size_t threads, bool remainders);
  void merge_crowds();
  void add_levels(std::size_t vocab_size);
  void add_remainders(const TokenTrie& trie, std::uint32_t node, std::uint32_t rounds, const std::bitset<256>& follow,
                      std::vector<std::string>& texts);

  std::vector<CostedToken> tokens_;  // by rounds; dropped where one mask says all
  std::vector<Level> levels_;
  std::optional<TokenTrie> remainder_tree_;
  std::vector<Remainder> remainders_;
  std::size_t nodes_walked_ = 0;
  std::vector<Crowd> crowds_;
  std::size_t widest_ = 0;
  std::uint32_t deepest_ = 0;
};

// Memory for masks, shared by the constraints of a model.
struct MaskBudget {
  explicit MaskBudget(std::size_t bytes) : bytes_left(bytes) {}
  std::atomic<std::size_t> bytes_left;
};

// The masks of an automaton's states, each made when it is first asked for. Any thread; no locks: of two threads that make the same
// mask one throws its own away.
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
  std::vector<std::bitset<256>> follow_;  // by rule
  std::shared_ptr<MaskBudget> budget_;
  mutable std::atomic<std::size_t> spent_{0};
  std::unique_ptr<std::atomic<const StateMask*>[]> masks_;  // by state
};

}  // namespace braid::grammar
