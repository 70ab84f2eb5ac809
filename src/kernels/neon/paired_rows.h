// Prepared rows of quantised types as usmmla takes them: two rows share the room of two, in which everything of a row (PreparedLayout) lies
// beside that of the other: eight codes of each in turn, and its other numbers one by one. The last of an odd number of rows stands twice.
// Internal linkage only.
#pragma once

#include "kernels/packed_layout.h"

namespace braid::kernels::neon {

// Putting weights in usmmla's order takes as many instructions as one pair has products, so that a pair alone gains nothing.
static constexpr std::int64_t kFirstPairedRows = 4;

static inline bool in_pairs(WeightType type, std::int64_t rows) { return is_quantized(type) && rows >= kFirstPairedRows; }

}  // namespace braid::kernels::neon
