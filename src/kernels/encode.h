// Encodes floats in the types of GGUF files by plain rounding: good enough to measure speed with.
#pragma once

#include <kernels/weight_type.h>

#include <cstddef>
#include <vector>

namespace braid::perf {

// Encodes `count` values, a multiple of the type's block, and appends them to `out`. Throws std::logic_error for Q2_K, Q3_K, IQ4_XS
// and MXFP4, which have no encoder here.
void encode(kernels::WeightType type, const float* values, std::size_t count, std::vector<std::byte>& out);

}  // namespace braid::perf
