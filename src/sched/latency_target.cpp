#include "sched/latency_target.h"

#include <algorithm>
#include <limits>

namespace braid::sched {

namespace {

constexpr std::size_t kFirstRows = 8;    // before anything was measured
constexpr double kRounding = 1e-6;       // a whole number of rows is that number
constexpr double kLeastVariance = 0.25;  // of rows: with less, samples do not tell a row's cost from a step's

}  // namespace

void LatencyTarget::observe(std::int32_t decode_rows, double seconds) {
  const auto rows = static_cast<double>(decode_rows);
  weight_ = weight_ * kMemory + 1.0;
  rows_ = rows_ * kMemory + rows;
  seconds_ = seconds_ * kMemory + seconds;
  rows_rows_ = rows_rows_ * kMemory + rows * rows;
  rows_seconds_ = rows_seconds_ * kMemory + rows * seconds;
}

// Where all samples have about the same rows, their whole time is taken to be the rows': more of them may cost less, never more.
LatencyTarget::Cost LatencyTarget::cost() const {
  const double mean_rows = rows_ / weight_;
  const double mean_seconds = seconds_ / weight_;
  const double variance = rows_rows_ / weight_ - mean_rows * mean_rows;
  const double most = mean_seconds / mean_rows;
  const double slope = variance < kLeastVariance ? most : (rows_seconds_ / weight_ - mean_rows * mean_seconds) / variance;
  const double row = std::clamp(slope, most * 1e-3, most);
  return {mean_seconds - row * mean_rows, row};
}

std::size_t LatencyTarget::most_rows() const {
  if (weight_ == 0.0) return kFirstRows;
  const auto [step, row] = cost();
  const double rows = std::max(1.0, (aim_ - step) / row + kRounding);
  return rows < 1e9 ? static_cast<std::size_t>(rows) : std::numeric_limits<std::size_t>::max();
}

double LatencyTarget::slice_seconds(std::int32_t decode_rows) const {
  return std::max(weight_ == 0.0 ? 0.0 : aim_ - decode_seconds(decode_rows), aim_ * kLeast);
}

double LatencyTarget::decode_seconds(std::int32_t rows) const {
  if (weight_ == 0.0) return 0.0;
  const auto [step, row] = cost();
  return step + row * rows;
}

}  // namespace braid::sched
