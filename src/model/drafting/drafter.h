// Who guesses tokens for rows with RowOutput::kVerify, beyond what their own texts tell: a small model, say. Strand only.
#pragma once

#include "step/step.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

// What may follow a sequence. Its tokens so far are `text`, the last of which is what it sampled last.
struct DraftWish {
  step::SlotId slot = 0;
  std::span<const TokenId> text;
  std::span<TokenId> guesses;  // to be written to
  std::size_t count = 0;       // how many were
};

// A wrong guess costs time, never a token: answers are the same bits whatever is guessed. So does one that throws: its step goes on without.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // The slot has a new owner, or one that comes back.
  virtual void start(const step::SlotStart& /*start*/) {}

  // Its sequence is over. Not told of one that was cancelled.
  virtual void end(step::SlotId /*slot*/) {}

  // Of all sequences of a step that want guesses from here.
  virtual void draft(std::span<DraftWish> wishes) = 0;
};

}  // namespace braid::model
