// Norms, rotations, activations and the reductions of sampling, for one row each.
#include "kernels/scalar/lanes.h"
#include "kernels/scalar/tier.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::kernels::scalar {
namespace {

float gelu_of(float x) { return x / (1.0F + exp(x * std::fma(x * x, kGeluCubic, kGeluLinear))); }

}  // namespace

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) noexcept {
  Lanes squares;
  for (std::int64_t i = 0; i < n; ++i) squares.sum[i % kLanes] = std::fma(x[i], x[i], squares.sum[i % kLanes]);
  const float inverse = 1.0F / std::sqrt(squares.tree() / static_cast<float>(n) + epsilon);
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * inverse * weight[i];
}

// The variance is that of the differences, so that a large mean takes nothing from it.
void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float epsilon, float* out) noexcept {
  Lanes sums;
  for (std::int64_t i = 0; i < n; ++i) sums.sum[i % kLanes] += x[i];
  const float mean = sums.tree() / static_cast<float>(n);
  Lanes squares;
  for (std::int64_t i = 0; i < n; ++i) squares.sum[i % kLanes] = std::fma(x[i] - mean, x[i] - mean, squares.sum[i % kLanes]);
  const float inverse = 1.0F / std::sqrt(squares.tree() / static_cast<float>(n) + epsilon);
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::fma((x[i] - mean) * inverse, weight[i], bias[i]);
}

void rope(float* x, std::int32_t heads, std::int32_t head_dim, std::int32_t rotated, const float* cos, const float* sin,
          bool interleaved) noexcept {
  const std::int32_t pairs = rotated / 2;
  const std::int32_t step = interleaved ? 2 : 1;  // between the first members of adjacent pairs
  const std::int32_t partner = interleaved ? 1 : pairs;
  for (std::int32_t h = 0; h < heads; ++h, x += head_dim) {
    for (std::int32_t i = 0; i < pairs; ++i) {
      float& a = x[i * step];
      float& b = x[i * step + partner];
      const float rotated_a = std::fma(a, cos[i], -(b * sin[i]));
      const float rotated_b = std::fma(b, cos[i], a * sin[i]);
      a = rotated_a;
      b = rotated_b;
    }
  }
}

// silu(g) = g / (1 + exp(-g))
void swiglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gate[i] / (1.0F + exp(-gate[i])) * up[i];
}

void geglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gelu_of(gate[i]) * up[i];
}

void gelu(const float* x, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gelu_of(x[i]);
}

// As attention caps scores: tanh(y) = 1 - 2 / (exp(2 y) + 1).
void soft_cap(float* x, std::int64_t n, float cap) noexcept {
  for (std::int64_t i = 0; i < n; ++i) x[i] = cap * (1.0F - 2.0F / (exp(x[i] * (2.0F / cap)) + 1.0F));
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

// NaNs never win; an empty, all-NaN or all -inf range gives 0.
std::int64_t argmax(const float* x, std::int64_t n) noexcept {
  float best = -std::numeric_limits<float>::infinity();
  std::int64_t index = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (x[i] > best) {
      best = x[i];
      index = i;
    }
  }
  return index;
}

float exp_sum(const float* x, std::int64_t n, float scale, float shift, float* out) noexcept {
  Lanes sums;
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = exp(std::fma(x[i], scale, -shift));
    sums.sum[i % kLanes] += out[i];
  }
  return sums.tree();
}

void masses_above(const float* x, std::int64_t n, float threshold, double* sums) noexcept {
  for (std::int64_t begin = 0; begin < n; begin += kMassRun) {
    double lanes[kLanes] = {};
    const std::int64_t end = std::min(n, begin + kMassRun);
    for (std::int64_t i = begin; i < end; ++i) {
      if (x[i] > threshold) lanes[i % kLanes] += static_cast<double>(x[i]);
    }
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    sums[begin / kMassRun] = lanes[0];
  }
}

}  // namespace braid::kernels::scalar
