#include "model/networks/activations.h"

#include "model/deterministic_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace braid::model {
namespace {

constexpr std::int64_t kTogether = 64;  // values whose exponentials are taken together
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Of kTogether values, kept where nothing else can point to, and in loops of a length that the compiler knows: it computes several at once.
// No function branches, so that all lanes take one way.
template <class Argument, class Function>
void map_block(const kernels::KernelTable& table, std::array<float, kTogether>& values, Argument&& argument, Function&& function) {
  std::array<float, kTogether> exponentials;
  for (std::size_t i = 0; i < kTogether; ++i) exponentials[i] = argument(values[i]);
  table.exp_sum(exponentials.data(), kTogether, 1.0F, 0.0F, exponentials.data());
  const std::array<float, kTogether> taken = exponentials;
  for (std::size_t i = 0; i < kTogether; ++i) {
    const float result = function(values[i], taken[i]);
    values[i] = std::isnan(values[i]) ? values[i] : result;
  }
}

// Calls function(x, e) -> float for each value, e being exp(argument(x)); what is no number stays.
template <class Argument, class Function>
void map_with_exp(const kernels::KernelTable& table, float* x, std::int64_t n, Argument&& argument, Function&& function) {
  std::array<float, kTogether> values{};
  for (std::int64_t begin = 0; begin < n; begin += kTogether) {
    const std::int64_t count = std::min(kTogether, n - begin);
    std::copy_n(x + begin, count, values.data());
    map_block(table, values, argument, function);
    std::copy_n(values.data(), count, x + begin);
  }
}

// The error function of |x|, given exp(-x^2): Abramowitz and Stegun (1964), 7.1.26, within 1.5e-7.
float error_function(float x, float e) {
  const float t = 1.0F / (1.0F + 0.3275911F * x);
  const float sum = ((((1.061405429F * t - 1.453152027F) * t + 1.421413741F) * t - 0.284496736F) * t + 0.254829592F) * t;
  return 1.0F - sum * e;
}

}  // namespace

void relu(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = x[i] < 0.0F ? 0.0F : x[i];  // a NaN stays
}

void sigmoid(const kernels::KernelTable& table, float* x, std::int64_t n) {
  map_with_exp(
      table, x, n, [](float v) { return -v; }, [](float, float e) { return 1.0F / (1.0F + e); });
}

void tanh(const kernels::KernelTable& table, float* x, std::int64_t n) {
  const auto function = [](float v, float e) {
    const float square = v * v;  // where 1 - e would lose digits: the series
    const float near =
        v * (1.0F + square * (-1.0F / 3.0F + square * (2.0F / 15.0F + square * (-17.0F / 315.0F + square * (62.0F / 2835.0F)))));
    const float far = std::copysign((1.0F - e) / (1.0F + e), v);
    return std::abs(v) < 0.25F ? near : far;
  };
  map_with_exp(
      table, x, n, [](float v) { return -2.0F * std::abs(v); }, function);
}

void silu(const kernels::KernelTable& table, float* x, std::int64_t n) {
  map_with_exp(
      table, x, n, [](float v) { return -v; }, [](float v, float e) { return v / (1.0F + e); });
}

void gelu(const kernels::KernelTable& table, float* x, std::int64_t n) {
  const auto function = [](float v, float e) {
    const float erf = std::copysign(error_function(std::abs(v) * 0.70710678F, e), v);
    return 0.5F * v * (1.0F + erf);
  };
  map_with_exp(
      table, x, n, [](float v) { return -0.5F * v * v; }, function);
}

void softplus(float* x, std::int64_t n) {
  constexpr double kLinearFrom = 20.0;  // as torch
  for (std::int64_t i = 0; i < n; ++i) {
    const double v = x[i];
    if (std::isnan(v) || v > kLinearFrom) continue;
    const double e = fixed_exp(v);
    x[i] = static_cast<float>(e < 1e-8 ? e : fixed_log(1.0 + e));
  }
}

void softmax(float* x, std::int64_t n, std::int64_t stride) {
  SoftmaxLine line;
  line.look(x, n, stride);
  line.add(x, n, stride);
  line.write(x, n, stride, x);
}

void log_softmax(float* x, std::int64_t n, std::int64_t stride) {
  SoftmaxLine line;
  line.look(x, n, stride);
  line.add(x, n, stride);
  line.write_log(x, n, stride, x);
}

bool SoftmaxLine::has_sum() const { return !has_nan_ && std::isfinite(largest_); }

void SoftmaxLine::look(const float* x, std::int64_t n, std::int64_t stride) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = x[i * stride];
    has_nan_ = has_nan_ || std::isnan(value);
    largest_ = std::max(largest_, value);
  }
}

void SoftmaxLine::add(const float* x, std::int64_t n, std::int64_t stride) {
  if (!has_sum()) return;
  for (std::int64_t i = 0; i < n; ++i) sum_ += fixed_exp(x[i * stride] - largest_);
}

void SoftmaxLine::write(const float* x, std::int64_t n, std::int64_t stride, float* out) const {
  const bool is_number = has_sum();
  for (std::int64_t i = 0; i < n; ++i) out[i * stride] = is_number ? static_cast<float>(fixed_exp(x[i * stride] - largest_) / sum_) : kNan;
}

void SoftmaxLine::write_log(const float* x, std::int64_t n, std::int64_t stride, float* out) const {
  const bool is_number = has_sum();
  const double log_sum = is_number ? fixed_log(sum_) : 0.0;
  for (std::int64_t i = 0; i < n; ++i) out[i * stride] = is_number ? static_cast<float>(x[i * stride] - largest_ - log_sum) : kNan;
}

}  // namespace braid::model
