// How many prompt tokens a step can take so that its decode rows do not wait too long for it, and how many sequences may run.
#pragma once

#include "sched/step_cost.h"

#include <cstddef>
#include <cstdint>

namespace braid::sched {

// Decides from the cost of steps that came back. No clock of its own.
class PrefillPace {
 public:
  // `slice_seconds`: what prefill may add to a step that decodes. Beside nothing it may take kAloneFactor times that: nobody waits for it
  // but new arrivals and cancellations.
  // `target_seconds`, if not 0: how long a step may take that decodes. Then it decides instead, and bounds the rows as well: at admission,
  // since who decodes goes on. A bound that falls is reached as answers end.
  explicit PrefillPace(double slice_seconds, double target_seconds = 0.0)
      : slice_seconds_(slice_seconds), target_seconds_(target_seconds) {}

  // Tokens that a prefill at `position` may add to a step that is already made up of `shape`. At least 1 if that has no prefill yet, so that
  // it always moves on; but after kMostMixed steps with prefill one goes without. As long as all of them have some, nothing tells its cost
  // from that of the decode rows.
  std::int32_t slice_tokens(const StepShape& shape, std::int32_t position) const;

  // From now on so many engines, this one included, take turns: who waits for all of them is to wait no longer than for one.
  void share_with(std::int32_t engines) { engines_ = engines; }

  void observe(const StepShape& shape, double seconds);
  // A step of this shape has come back whose time tells nothing: it was cut short, or did something else as well.
  void pass_over(const StepShape& shape);

  // Sequences that may run at once, `most` at most.
  std::size_t most_rows(std::size_t most) const;

  // What steps take, as far as it has been learned.
  const StepCost& cost() const { return cost_; }

  // Of the last prefill; 0 while nothing was measured.
  double tokens_per_second() const { return tokens_per_second_; }

 private:
  static constexpr std::int32_t kFirstSlice = 64;  // before anything was measured
  static constexpr std::size_t kFirstRows = 8;     // likewise, with a target
  static constexpr std::size_t kRowGrowth = 4;     // rows are at most so many times the most that there were
  static constexpr std::int32_t kGrowth = 2;       // a slice is at most so many times the largest that was measured
  static constexpr double kLeastOwn = 0.5;  // of the time that reading a context takes, tokens get: else a deep prompt would hardly move
  static constexpr std::int32_t kMostMixed = 16;
  static constexpr double kAloneFactor = 2.0;
  static constexpr double kLeastShare = 0.1;   // of the target is left for prefill
  static constexpr double kCaution = 2.0;      // deviations that are kept free
  static constexpr double kMostCaution = 0.5;  // but no more than this part of the time

  double room_seconds(const StepShape& shape) const;
  double target_seconds() const { return target_seconds_ / engines_; }

  double slice_seconds_;
  double target_seconds_;
  std::int32_t engines_ = 1;
  StepCost cost_;
  std::int32_t largest_slice_ = kFirstSlice / kGrowth;
  std::int32_t mixed_steps_ = 0;  // that have come back in a row
  bool wants_decode_alone_ = false;
  double tokens_per_second_ = 0.0;
  double read_per_row_ = 0.0;      // in the last step that decoded
  std::int32_t most_decoded_ = 0;  // rows of a step
};

}  // namespace braid::sched
