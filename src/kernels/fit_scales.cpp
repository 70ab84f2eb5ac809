// A scale decides the codes, and codes decide the best scale (least squares). So scales around the one that the largest value asks for are
// tried, and of what their codes' best scales give, the best is taken.
#include "kernels/fit_scales.h"

#include <algorithm>
#include <cmath>

namespace braid::kernels {
namespace {

// To the nearest whole number, for values far below 2^22; what is no number becomes 0.
inline float rounded(float value, float low, float high) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: its last bit is 1
  const float whole = value + kMagic - kMagic;
  return whole > low ? std::min(whole, high) : low;
}

float furthest(const float* values, int count) {
  return *std::max_element(values, values + count, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

// Of one set of codes: sums of weight * code * value and weight * code^2. Their best scale is the quotient, and it takes product^2 / square
// off the error.
struct Sums {
  float product = 0.0F;
  float square = 0.0F;
  bool better_than(const Sums& other) const {
    return square > 0.0F && product * product * other.square > other.product * other.product * square;
  }
  float scale() const { return square > 0.0F ? product / square : 0.0F; }
};

// tried(step) gives the sums of one scale's codes.
template <class Tried>
float best_scale(int steps, const Tried& tried) {
  Sums best = tried(0);
  for (int step = 1; step <= steps; ++step) {
    for (const int side : {-step, step}) {
      const Sums sums = tried(side);
      if (best.square == 0.0F || sums.better_than(best)) best = sums;
    }
  }
  const float scale = best.scale();
  return std::isfinite(scale) ? scale : 0.0F;
}

}  // namespace

AffineFit fit_affine(const float* values, const float* weights, int count, float most) noexcept {
  constexpr int kSteps = 19;
  const auto [low_at, high_at] = std::minmax_element(values, values + count);
  const float low = std::min(0.0F, *low_at);
  const float range = *high_at - low;
  if (!(range > 0.0F) || !std::isfinite(range)) return {0.0F, std::isfinite(low) ? -low : 0.0F};
  float sum = 0.0F;
  float sum_value = 0.0F;
  for (int i = 0; i < count; ++i) {
    sum += weights[i];
    sum_value += weights[i] * values[i];
  }
  const auto error_of = [&](float inverse, float scale, float minimum) {
    float error = 0.0F;
    for (int i = 0; i < count; ++i) {
      const float difference = scale * rounded(inverse * (values[i] - low), 0.0F, most) + minimum - values[i];
      error += weights[i] * difference * difference;
    }
    return error;
  };
  float scale = range / most;
  float minimum = low;
  float best = error_of(1.0F / scale, scale, minimum);
  for (int step = 0; step < kSteps; ++step) {
    const float inverse = (most - 0.9F + 0.1F * static_cast<float>(step)) / range;
    float sum_code = 0.0F;
    float sum_square = 0.0F;
    float sum_product = 0.0F;
    for (int i = 0; i < count; ++i) {
      const float code = rounded(inverse * (values[i] - low), 0.0F, most);
      sum_code += weights[i] * code;
      sum_square += weights[i] * code * code;
      sum_product += weights[i] * code * values[i];
    }
    const float determinant = sum * sum_square - sum_code * sum_code;
    if (!(determinant > 0.0F)) continue;
    float tried_scale = (sum * sum_product - sum_value * sum_code) / determinant;
    float tried_minimum = (sum_square * sum_value - sum_code * sum_product) / determinant;
    if (tried_minimum > 0.0F) {
      tried_minimum = 0.0F;
      tried_scale = sum_product / sum_square;
    }
    const float error = error_of(inverse, tried_scale, tried_minimum);
    if (!(error < best)) continue;
    best = error;
    scale = tried_scale;
    minimum = tried_minimum;
  }
  return {scale, -minimum};
}

float fit_symmetric(const float* values, const float* weights, int count, float half) noexcept {
  const float largest = furthest(values, count);
  if (!(std::fabs(largest) > 1e-15F) || !std::isfinite(largest)) return 0.0F;
  return best_scale(9, [&](int step) {
    const float inverse = -(half + 0.1F * static_cast<float>(step)) / largest;
    Sums sums;
    for (int i = 0; i < count; ++i) {
      const float code = rounded(inverse * values[i], -half, half - 1.0F);
      sums.product += weights[i] * code * values[i];
      sums.square += weights[i] * code * code;
    }
    return sums;
  });
}

float fit_positive(const float* values, const float* weights, int count, float most) noexcept {
  const float largest = *std::max_element(values, values + count);
  if (!(largest > 1e-15F) || !std::isfinite(largest)) return 0.0F;
  return best_scale(9, [&](int step) {
    const float inverse = (most + 0.1F * static_cast<float>(step)) / largest;
    Sums sums;
    for (int i = 0; i < count; ++i) {
      const float code = rounded(inverse * values[i], 0.0F, most);
      sums.product += weights[i] * code * values[i];
      sums.square += weights[i] * code * code;
    }
    return sums;
  });
}

float fit_table(const float* values, const float* weights, int count, const std::uint8_t* table, float bias) noexcept {
  const float largest = furthest(values, count);
  if (!(std::fabs(largest) > 1e-15F) || !std::isfinite(largest)) return 0.0F;
  const float lowest = static_cast<float>(table[0]) - bias;
  return best_scale(9, [&](int step) {
    const float inverse = (lowest - static_cast<float>(step)) / largest;
    Sums sums;
    for (int i = 0; i < count; ++i) {
      const float wanted = inverse * values[i] + bias;
      const std::uint8_t* above = std::lower_bound(table + 1, table + 15, wanted,
                                                   [](std::uint8_t entry, float value) { return static_cast<float>(entry) < value; });
      const float high = static_cast<float>(*above);
      const float low = static_cast<float>(above[-1]);
      const float entry = (wanted - low < high - wanted ? low : high) - bias;
      sums.product += weights[i] * entry * values[i];
      sums.square += weights[i] * entry * entry;
    }
    return sums;
  });
}

}  // namespace braid::kernels
