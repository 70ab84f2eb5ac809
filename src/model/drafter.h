// Who guesses the tokens that rows with RowOutput::kVerify verify. Strand only.
#pragma once

#include "step/step.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

// A wrong guess costs time, never a token: answers are the same bits whatever is guessed.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Writes tokens that may follow `last`, which stands at `position` of the slot's sequence and is what it sampled last; returns how many,
  // at most guesses.size(). All of the model's vocabulary.
  virtual std::size_t draft(step::SlotId slot, TokenId last, std::int32_t position, std::span<TokenId> guesses) = 0;
};

}  // namespace braid::model
