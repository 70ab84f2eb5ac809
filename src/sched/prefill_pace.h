// How many prompt tokens a step can take so that its decode rows do not wait too long for it.
#pragma once

#include "sched/latency_target.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace braid::sched {

// What a step was made of.
struct StepShape {
  std::int32_t decode_rows = 0;
  std::int32_t prefill_tokens = 0;
};

// Learns tokens per second of prefill and seconds of pure decode steps from the steps that come back. No clock of its own.
// A mixed step's prefill time is its time less that of a pure decode step with about as many rows; a prefill's time beside nothing
// includes the cost of a step as such, so estimates err on the short side.
class PrefillPace {
 public:
  // `slice_seconds`: what prefill may add to a step that decodes. Beside nothing a slice may take kAloneFactor times that: nobody
  // waits for it but new arrivals and cancellations.
  // With a target, that decides instead beside decode rows.
  explicit PrefillPace(double slice_seconds, std::optional<LatencyTarget> target = std::nullopt)
      : slice_seconds_(slice_seconds), target_(target) {}

  // At least 1, so that a prefill always moves on.
  std::int32_t slice_tokens(std::int32_t decode_rows) const;

  void observe(const StepShape& shape, double seconds);

  // Sequences that may run at once, if a target bounds them.
  std::size_t most_rows(std::size_t otherwise) const { return target_ ? std::min(target_->most_rows(), otherwise) : otherwise; }

  // 0 while nothing was measured.
  double tokens_per_second() const { return tokens_per_second_; }

 private:
  static constexpr std::int32_t kFirstSlice = 64;  // before anything was measured
  static constexpr double kAloneFactor = 2.0;
  static constexpr double kWeight = 0.5;           // of a new sample
  static constexpr double kGrowth = 2.0;           // the most a single sample may raise the rate
  static constexpr double kLeastShare = 0.25;      // prefill tokens count at least this part of their share of a step's rows

  double decode_seconds(std::int32_t rows) const;
  void bound_decode_seconds(const StepShape& shape, double seconds);

  double slice_seconds_;
  std::optional<LatencyTarget> target_;
  double tokens_per_second_ = 0.0;          // 0: not measured yet
  std::array<double, 33> decode_seconds_{};  // by bit width of the row count; 0: not measured yet
};

}  // namespace braid::sched
