// The suffix automaton of an answer: finds what followed any piece of it.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::step {

// Has at most twice as many states as tokens; a text is followed in constant time for each of its tokens, but for the search of an edge
// (Blumer et al., "The smallest automaton recognizing the subwords of a text", 1985). Some 70 bytes for each token. Immutable: any thread.
class AnswerAutomaton {
 public:
  explicit AnswerAutomaton(std::vector<TokenId> answer);

  // How much of the end of some text stands in the answer: `length` tokens.
  struct Place {
    std::uint32_t state = 0;
    std::uint32_t length = 0;
  };

  // Of the text with one token more.
  Place advance(Place place, TokenId token) const;
  // What follows in the answer, where the piece stands first.
  std::span<const TokenId> after(Place place) const { return std::span(answer_).subspan(states_[place.state].end); }

 private:
  class Builder;

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct State {
    std::uint32_t longest = 0;  // piece that leads here
    std::uint32_t link = kNone;
    std::uint32_t end = 0;  // of the first place where it stands
  };
  struct Edge {
    std::uint32_t from = 0;
    TokenId token = 0;
    std::uint32_t to = 0;
  };

  std::uint32_t next(std::uint32_t state, TokenId token) const;

  std::vector<TokenId> answer_;
  std::vector<State> states_;
  std::vector<Edge> edges_;  // ascending
};

// Of one client, the latest first. Immutable, so that the strand may hold it as long as it likes.
using RecentAnswers = std::shared_ptr<const std::vector<std::shared_ptr<const AnswerAutomaton>>>;

}  // namespace braid::step
