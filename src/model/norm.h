// The norms of a model.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"
#include "model/weights.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace braid::model {

// One row of shape.width values, the index-th of those with weights of their own; `out` may be `x`. The shape is none of kNone.
inline void normalise(const kernels::KernelTable& table, const NormShape& shape, const NormWeights& norm, const float* x, float* out,
                      std::int64_t index = 0) {
  const float* weight = norm.weight.data() + (shape.rows > 1 ? index * shape.width : 0);
  if (shape.kind == NormShape::Kind::kLayer) {
    table.layer_norm(x, weight, norm.bias.data(), shape.width, shape.epsilon, out);
  } else {
    table.rms_norm(x, weight, shape.width, shape.epsilon, out);
  }
}

// Whether the squares of `x` have a finite sum, whatever the others are. Of others norms make zeros, which look like an answer: instead,
// what comes of such a row is to be NaNs.
inline bool in_range(const float* x, std::int64_t count) {
  constexpr float kTooLarge = 0x1p55F;
  std::uint32_t largest = 0;  // magnitude, in bits: infinities and NaNs come last
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU);
  return largest < std::bit_cast<std::uint32_t>(kTooLarge);
}

}  // namespace braid::model
