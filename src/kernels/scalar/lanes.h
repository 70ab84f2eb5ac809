// The lane structure of float reductions and exp, as numerics.h defines them.
#pragma once

#include "kernels/numerics.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace braid::kernels::scalar {

struct Lanes {
  float sum[kLanes] = {};

  float tree() const {
    float level[kLanes];
    for (int i = 0; i < kLanes; ++i) level[i] = sum[i];
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) level[i] += level[i + half];
    }
    return level[0];
  }
};

static inline float exp(float x) {
  const float clamped = x > kExpHighest ? kExpHighest : x;
  const float shifted = std::fma(clamped, kLog2E, kRoundMagic);
  const float n = shifted - kRoundMagic;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, clamped));
  float q = std::fma(kExpQ4, r, kExpQ3);
  q = std::fma(q, r, kExpQ2);
  q = std::fma(q, r, kExpQ1);
  q = std::fma(q, r, kExpQ0);
  const float fraction = std::fma(std::fma(q, r, 1.0F), r, 1.0F);
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3F800000U);
  return x < kExpLowest ? 0.0F : fraction * power;
}

}  // namespace braid::kernels::scalar
