// Guesses within a constraint: what it does not allow is cut off, and where it allows one token only, that one is guessed.
#pragma once

#include "braid/constraint.h"
#include "braid/speculation.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

// `ahead` stands where the guesses begin, and is used up; `count` of them are there. `mask` is room for a bit of each token. Returns how many
// there are then, with a source for each of the forced ones.
std::size_t keep_to_constraint(ConstraintState& ahead, std::span<TokenId> guesses, std::size_t count, std::span<DraftSource> sources,
                               std::span<std::uint32_t> mask);

}  // namespace braid::model
