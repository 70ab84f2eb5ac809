// A rotation of 64 values by a Walsh-Hadamard matrix, which is its own inverse. Applied to the weights and the activations of a product it
// changes nothing but what rounding costs: an outlier is shared out among 64 values, so that an 8-bit scale fits all of them better
// (QuaRot, Ashkboos et al. 2024).
//
// Part of the numerics contract: (a + b, a - b) at distances 32, 16, 8, 4, 2 and 1, then times 1/8, which is exact. Internal linkage,
// because wide tiers have their own.
#pragma once

#include <cstdint>

namespace braid::kernels {

constexpr std::int64_t kRotatedValues = 64;
constexpr float kRotationScale = 0.125F;

// `to` may be `x`.
static inline void rotate(const float* x, float* to) {
  float values[kRotatedValues];
  for (std::int64_t i = 0; i < kRotatedValues; ++i) values[i] = x[i];
  for (std::int64_t distance = kRotatedValues / 2; distance > 0; distance /= 2) {
    for (std::int64_t begin = 0; begin < kRotatedValues; begin += 2 * distance) {
      for (std::int64_t i = begin; i < begin + distance; ++i) {
        const float a = values[i];
        const float b = values[i + distance];
        values[i] = a + b;
        values[i + distance] = a - b;
      }
    }
  }
  for (std::int64_t i = 0; i < kRotatedValues; ++i) to[i] = values[i] * kRotationScale;
}

}  // namespace braid::kernels
