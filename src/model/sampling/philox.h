// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a pure
// function of key and counter, so a draw depends on nothing that ran before it.
#pragma once

#include <array>
#include <cstdint>

namespace braid::model {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// A number in [0, 1) with 53 random bits for one token of one choice of a seeded request. A token that needs several counts `draw`.
double uniform_draw(std::uint64_t seed, std::uint32_t choice, std::int64_t position, std::uint32_t draw = 0);

}  // namespace braid::model
