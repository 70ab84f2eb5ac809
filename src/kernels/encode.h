// Floats to stored weights, for every type: the inverse of dequantize_row, by plain rounding or with a search for better scales. Slow:
// for converting files, and for quantising at load.
#pragma once

#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Encodes a row of `columns` values, a multiple of the type's block, into stored_row_bytes() bytes.
void encode_row(WeightType type, const float* values, std::int64_t columns, std::byte* stored) noexcept;

// The same with scales by which the sum of squared errors becomes small, each weighed by `importance` [columns] (how much the squares of
// its input come to) or, where that is null, by the value's own size. Types that have no search are rounded plainly: Q8_0, MXFP4, floats,
// and without `importance` Q4_0, Q4_1, Q5_0 and Q5_1, whose bits are then those of llama.cpp.
void encode_row_fitted(WeightType type, const float* values, const float* importance, std::int64_t columns, std::byte* stored) noexcept;

// One block of 32 codes whose scale is known, for Q4_0, Q5_0 and Q8_0 (values are (code - 8, 16 or 128) * scale) and for Q4_1 and Q5_1
// (code * scale + minimum). Lossless where both floats are f16.
void encode_codes(WeightType type, const unsigned (&codes)[32], float scale, float minimum, std::byte* stored) noexcept;

// One block of 256 values; encode_row calls it for the types that have them.
void encode_super_block(WeightType type, const float* values, std::byte* stored) noexcept;

}  // namespace braid::kernels
