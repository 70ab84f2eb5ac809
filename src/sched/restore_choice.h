// Whether what a sequence lacks is read from disk or computed again: whichever has been the faster one lately.
#pragma once

#include <cstdint>

namespace braid::sched {

// Loop only. No clock of its own. Until both have been measured the disk is tried; once it has turned out slower, every kRetry-th
// sequence tries it all the same, so that a slow spell is not for ever.
class RestoreChoice {
 public:
  static constexpr std::uint32_t kRetry = 32;

  // `tokens` have come from disk within `seconds`, from the sequence's place in the batch to its last load.
  void observe(std::int32_t tokens, double seconds) {
    if (tokens <= 0) return;
    const double sample = seconds / tokens;
    seconds_per_token_ += (sample - seconds_per_token_) * (seconds_per_token_ == 0.0 ? 1.0 : kWeight);
  }

  // `prefill_rate`: tokens per second, 0 while not measured. `is_there`: something of it has been found on disk; only such a one can try a
  // slow disk, and counts.
  bool takes_disk(double prefill_rate, bool is_there = true) {
    const bool slower = seconds_per_token_ > 0.0 && prefill_rate > 0.0 && seconds_per_token_ * prefill_rate > 1.0;
    return !slower || (is_there && ++passed_over_ % kRetry == 0);
  }

 private:
  static constexpr double kWeight = 0.25;  // of a new sample

  double seconds_per_token_ = 0.0;  // 0: not measured yet
  std::uint32_t passed_over_ = 0;
};

}  // namespace braid::sched
