// Floats to stored weights, for every type: the inverse of dequantize_row by plain rounding, without a search for better scales. Slow:
// for converting files, and for quantising at load.
#pragma once

#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Encodes a row of `columns` values, a multiple of the type's block, into stored_row_bytes() bytes.
void encode_row(WeightType type, const float* values, std::int64_t columns, std::byte* stored) noexcept;

// One block of 256 values; encode_row calls it for the types that have them.
void encode_super_block(WeightType type, const float* values, std::byte* stored) noexcept;

}  // namespace braid::kernels
