// What layers that carry a state on read of guessed tokens, kept until it is known which of these are right. The state has not gone on behind
// them, and cannot go back; those that are right are carried on from here, to the same bits.
#pragma once

#include "model/rows.h"
#include "step/pass.h"

#include <algorithm>
#include <cstdint>

namespace braid::model {

// Of one layer: rows from PassSequence::kept on.
struct KeptInputs {
  Rows mixed;          // [drafts, what the layer's input gives]
  Rows betas, decays;  // [drafts, heads], of the delta rule
};

// The guesses of all sequences of the pass, of whose rows `width` floats matter.
inline void keep_inputs(const step::Pass& pass, const Rows& rows, const Rows& kept, std::int64_t width) {
  for (const step::PassSequence& sequence : pass.sequences)
    for (std::int32_t i = 0; i < sequence.drafted; ++i)
      std::copy_n(rows[sequence.first + sequence.count - sequence.drafted + i], width, kept[sequence.kept + i]);
}

// Those of the tokens of `replay`, which were guesses.
inline void take_inputs(const step::Pass& replay, const Rows& kept, const Rows& rows, std::int64_t width) {
  for (const step::PassSequence& sequence : replay.sequences)
    for (std::int32_t i = 0; i < sequence.count; ++i) std::copy_n(kept[sequence.kept + i], width, rows[sequence.first + i]);
}

}  // namespace braid::model
