// Sums over rows that training makes, in float64 and in an order of their own: the same bits on every machine.
#pragma once

#include "model/deterministic_math.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model::rows {

template <class A, class B>
double dot(const A* a, const B* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[static_cast<std::size_t>(lane)] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  for (; i < count; ++i) lanes[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// to += factor * from
template <class From>
void add(double factor, const From* from, double* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * static_cast<double>(from[i]);
}

// out = x / sqrt(mean(x^2) + epsilon) * weight, over weight.size() values; `out` may be `x`.
template <class X, class Out>
void normalise(std::span<const float> weight, double epsilon, const X* x, Out* out) {
  const auto count = static_cast<std::int64_t>(weight.size());
  const double factor = 1.0 / std::sqrt(dot(x, x, count) / static_cast<double>(count) + epsilon);
  for (std::size_t i = 0; i < weight.size(); ++i)
    out[i] = static_cast<Out>(static_cast<double>(x[i]) * factor * static_cast<double>(weight[i]));
}

// x_slope += what follows from the slope of normalise()'s result.
inline void add_normalise_slope(std::span<const float> weight, double epsilon, const double* x, const double* slope, double* x_slope) {
  const auto count = static_cast<std::int64_t>(weight.size());
  const double factor = 1.0 / std::sqrt(dot(x, x, count) / static_cast<double>(count) + epsilon);
  double along = 0.0;
  for (std::size_t i = 0; i < weight.size(); ++i) along += slope[i] * static_cast<double>(weight[i]) * x[i];
  along *= factor * factor * factor / static_cast<double>(count);
  for (std::size_t i = 0; i < weight.size(); ++i) x_slope[i] += factor * static_cast<double>(weight[i]) * slope[i] - along * x[i];
}

// An activation and its derivative.
struct Activated {
  double value = 0.0;
  double slope = 0.0;
};
inline double exp_of(double x) { return fixed_exp(x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x); }
inline Activated silu(double x) {
  const double share = 1.0 / (1.0 + exp_of(-x));
  return {x * share, share * (1.0 + x * (1.0 - share))};
}
inline Activated tanh_gelu(double x) {
  constexpr double kFactor = 0.7978845608028654;  // sqrt(2 / pi)
  constexpr double kCube = 0.044715;
  const double t = 1.0 - 2.0 / (1.0 + exp_of(2.0 * kFactor * (x + kCube * x * x * x)));
  return {0.5 * x * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kFactor * (1.0 + 3.0 * kCube * x * x)};
}

}  // namespace braid::model::rows
