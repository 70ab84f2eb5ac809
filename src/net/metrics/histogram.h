// How often values fell between bounds, and their sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace braid::net {

// Milliseconds. Prometheus interpolates within a bucket: 1-2-5 steps keep a quantile within about half of its value, and bucket
// counts of several servers add up.
inline constexpr std::array<double, 17> kRequestBounds = {1,    2,     5,     10,     20,     50,     100,     200,    500,
                                                          1000, 2'000, 5'000, 10'000, 30'000, 60'000, 120'000, 300'000};
// Between the tokens of one answer: finer where readers notice.
inline constexpr std::array<double, 18> kTokenBounds = {0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 500, 1000, 2'000, 10'000};

// Tokens, or other things that are counted.
inline constexpr std::array<double, 18> kCountBounds = {1,    2,     5,     10,     20,     50,     100,     200,     500,
                                                        1000, 2'000, 5'000, 10'000, 20'000, 50'000, 100'000, 200'000, 500'000};

// Loop only. `bounds` ascend and outlive it.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value) {
    ++counts_[static_cast<std::size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin())];
    sum_ += value;
  }

  std::span<const double> bounds() const { return bounds_; }
  std::span<const std::uint64_t> counts() const { return counts_; }  // [bounds + 1]: not cumulative; the last one is above every bound
  double sum() const { return sum_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0.0;
};

}  // namespace braid::net
