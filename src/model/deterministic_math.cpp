#include "model/deterministic_math.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace braid::model {
namespace {

// ln 2 and pi / 2 as sums: the leading parts have trailing zeros, so that their products with a small integer are exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kHalfPi1 = 0x1.921fb4p+0;         // 24 bits
constexpr double kHalfPi2 = 0x1.4442dp-24;         // the next 24
constexpr double kHalfPi3 = 0x1.8469898cc517p-48;  // the rest, rounded

double scale_by_power(double x, std::int64_t exponent) {
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// Taylor series on |x| <= pi / 4: the first term left out is below 2^-60 of the result.
double sin_near_zero(double x) {
  const double s = x * x;
  double sum = 1.0;
  for (int n = 20; n >= 2; n -= 2) sum = 1.0 - s / (n * (n + 1.0)) * sum;
  return x * sum;
}

double cos_near_zero(double x) {
  const double s = x * x;
  double sum = 1.0;
  for (int n = 21; n >= 1; n -= 2) sum = 1.0 - s / (n * (n + 1.0)) * sum;
  return sum;
}

}  // namespace

double fixed_exp(double x) {
  if (x < -700.0) return 0.0;
  if (x > 700.0) x = 700.0;
  const double k = std::nearbyint(x * 0x1.71547652b82fep+0);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double sum = 1.0;
  for (int n = 16; n >= 1; --n) sum = 1.0 + r / n * sum;
  return scale_by_power(sum, static_cast<std::int64_t>(k));
}

double fixed_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    exponent += 1;
  }
  // ln m = 2 artanh((m - 1) / (m + 1)), whose argument is below 0.172.
  const double t = (mantissa - 1.0) / (mantissa + 1.0);
  const double s = t * t;
  double sum = 0.0;
  for (int n = 23; n >= 1; n -= 2) sum = 1.0 / n + s * sum;
  const auto k = static_cast<double>(exponent);
  return k * kLn2High + (2.0 * t * sum + k * kLn2Low);
}

SinCos fixed_sin_cos(double x) {
  const double k = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  const double r = ((x - k * kHalfPi1) - k * kHalfPi2) - k * kHalfPi3;
  const double s = sin_near_zero(r);
  const double c = cos_near_zero(r);
  switch (static_cast<std::int64_t>(k) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

}  // namespace braid::model
