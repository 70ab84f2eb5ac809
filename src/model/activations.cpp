#include "model/activations.h"

#include "kernels/numerics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>

namespace braid::model {
namespace {

// numerics.h's exp: n = round(x / ln 2), and a polynomial for the rest.
float exp_of(float x) {
  using namespace kernels;
  x = std::clamp(x, kExpLowest, kExpHighest);
  const float shifted = x * kLog2E + kRoundMagic;
  const float n = shifted - kRoundMagic;
  const float r = x - n * kLn2High - n * kLn2Low;
  const float q = (((kExpQ4 * r + kExpQ3) * r + kExpQ2) * r + kExpQ1) * r + kExpQ0;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - static_cast<std::uint32_t>(kRoundMagicBits);
  return std::bit_cast<float>((exponent + 127U) << 23U) * (1.0F + r + r * r * q);
}

// exp(x) - 1 for x <= 0. Near 0 the series, since the difference would lose its digits.
float exp_less_one(float x) {
  if (x < -0.25F) return exp_of(x) - 1.0F;
  return x * (1.0F + x / 2.0F * (1.0F + x / 3.0F * (1.0F + x / 4.0F * (1.0F + x / 5.0F * (1.0F + x / 6.0F)))));
}

// Phi(x) = erfc(-x / sqrt(2)) / 2, by Abramowitz and Stegun (1964), 7.1.26; its error is below 1e-7.
float normal_distribution(float x) {
  const float z = std::fabs(x) * 0.70710678F;
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  const float polynomial = ((((1.061405429F * t - 1.453152027F) * t + 1.421413741F) * t - 0.284496736F) * t + 0.254829592F) * t;
  const float tail = 0.5F * polynomial * exp_of(-z * z);
  return x > 0.0F ? 1.0F - tail : tail;
}

template <class Function>
void for_all(const float* x, std::int64_t n, float* out, Function function) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = function(x[i]);
}

// Comparisons that keep what is no number.
void clamped_swish(const FeedForwardShape& shape, const float* gate, const float* up, float* out) {
  constexpr float kSlope = 1.702F;
  for (std::int64_t i = 0; i < shape.width; ++i) {
    const float g = gate[i] > shape.limit ? shape.limit : gate[i];
    const float u = up[i] > shape.limit ? shape.limit : up[i] < -shape.limit ? -shape.limit : up[i];
    out[i] = g / (1.0F + exp_of(-kSlope * g)) * (u + 1.0F);
  }
}

}  // namespace

float sigmoid(float x) noexcept { return 1.0F / (1.0F + exp_of(-x)); }

void apply(const FeedForwardShape& shape, const float* x, float* out) noexcept {
  switch (shape.activation) {
    case Activation::kSilu:
      return for_all(x, shape.width, out, [](float v) { return v / (1.0F + exp_of(-v)); });
    case Activation::kGelu:
      return for_all(x, shape.width, out, [](float v) { return v * normal_distribution(v); });
    case Activation::kGeluTanh:
      return for_all(x, shape.width, out,
                     [](float v) { return v / (1.0F + exp_of(v * (kernels::kGeluLinear + kernels::kGeluCubic * v * v))); });
    case Activation::kRelu:
      return for_all(x, shape.width, out, [](float v) { return v < 0.0F ? 0.0F : v; });
    case Activation::kReluSquared:
      return for_all(x, shape.width, out, [](float v) { return v < 0.0F ? 0.0F : v * v; });
    case Activation::kXielu:
      return for_all(x, shape.width, out, [&p = shape.xielu](float v) {
        if (v > 0.0F) return p.positive * v * v + p.linear * v;
        return (exp_less_one(std::min(v, p.epsilon)) - v) * p.negative + p.linear * v;
      });
    case Activation::kClampedSwish:
      return;
  }
}

namespace {

// max(0, x - (mean + cut * deviation)); sums in double, in order.
void cut_below(const float* x, std::int64_t n, float cut, float* out) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  double squares = 0.0;
  for (std::int64_t i = 0; i < n; ++i) squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  const auto least = static_cast<float>(mean + static_cast<double>(cut) * std::sqrt(squares / static_cast<double>(n)));
  for_all(x, n, out, [least](float v) { return v - least < 0.0F ? 0.0F : v - least; });
}

}  // namespace

void activate(const kernels::KernelTable& table, const FeedForwardShape& shape, const float* gate, const float* up, float* out) noexcept {
  if (shape.cut) {
    cut_below(gate, shape.width, *shape.cut, out);
    apply(shape, out, out);
    std::transform(out, out + shape.width, up, out, std::multiplies<>());
    return;
  }
  if (shape.activation == Activation::kClampedSwish) return clamped_swish(shape, gate, up, out);
  if (shape.gated && shape.activation == Activation::kSilu) return table.swiglu(gate, up, shape.width, out);
  if (shape.gated && shape.activation == Activation::kGeluTanh) return table.geglu(gate, up, shape.width, out);
  if (shape.activation == Activation::kGeluTanh) return table.gelu(up, shape.width, out);
  apply(shape, shape.gated ? gate : up, out);
  if (shape.gated) std::transform(out, out + shape.width, up, out, std::multiplies<>());
}

}  // namespace braid::model
