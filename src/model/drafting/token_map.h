// Between the tokens of two models, by the text that they stand for.
#pragma once

#include "braid/generation_request.h"

#include <span>
#include <vector>

namespace braid::model {

// Immutable. Whatever it makes of a text is a guess: no answer depends on it.
class TokenMap {
 public:
  virtual ~TokenMap() = default;

  // Appends the small model's tokens for a piece of a text of the large one's, and the other way round.
  virtual void to_small(std::span<const TokenId> piece, std::vector<TokenId>& tokens) const = 0;
  virtual void to_large(std::span<const TokenId> piece, std::vector<TokenId>& tokens) const = 0;
};

}  // namespace braid::model
