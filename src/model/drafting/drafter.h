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
  std::span<const std::int32_t> blocks =
      {};                 // that have its text and guesses, of the first group of layers; empty where that does not see all
  std::size_t count = 0;  // guesses written
  std::size_t read = 0;   // tokens of the text that were computed for it
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

  // What it has of a block that is saved: so many bytes lie behind the block's own in the buffers of a plan's saves and loads.
  virtual std::size_t saved_bytes() const { return 0; }
  // Blocks of the first group go where the plan moves them, before its rows. `block_bytes`: of the block's own in a buffer; in those of saves
  // the rest is zero where nothing is written.
  virtual void move(const step::StepPlan& /*plan*/, std::size_t /*block_bytes*/) {}

  // It has failed too often and is not asked again: what it keeps of sequences may go.
  virtual void give_up() {}
};

}  // namespace braid::model
