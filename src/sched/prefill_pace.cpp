#include "sched/prefill_pace.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

namespace braid::sched {

namespace {

std::size_t bucket(std::int32_t rows) { return static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(rows))); }

}  // namespace

std::int32_t PrefillPace::slice_tokens(std::int32_t decode_rows) const {
  if (tokens_per_second_ == 0.0) return kFirstSlice;
  const double beside_rows = target_ ? target_->slice_seconds(decode_rows) : slice_seconds_;
  const double seconds = decode_rows > 0 ? beside_rows : slice_seconds_ * kAloneFactor;
  const double tokens = std::min(tokens_per_second_ * seconds, static_cast<double>(std::numeric_limits<std::int32_t>::max() / 2));
  return std::max(1, static_cast<std::int32_t>(tokens));
}

void PrefillPace::observe(const StepShape& shape, double seconds) {
  if (seconds <= 0.0) return;
  if (shape.prefill_tokens == 0) {
    double& known = decode_seconds_[bucket(shape.decode_rows)];
    known += (seconds - known) * (known == 0.0 ? 1.0 : kWeight);
    if (target_) target_->observe(shape.decode_rows, seconds);
    return;
  }
  bound_decode_seconds(shape, seconds);
  const double tokens = shape.prefill_tokens;
  const double share = tokens / (tokens + shape.decode_rows);
  const double decoding = target_ ? target_->decode_seconds(shape.decode_rows) : decode_seconds(shape.decode_rows);
  if (target_ && shape.decode_rows > 0 && decoding == 0.0) return;  // the rows' part of it is not known
  const double prefill_seconds = std::max(seconds - decoding, seconds * share * kLeastShare);
  const double sample = tokens / prefill_seconds;
  if (tokens_per_second_ == 0.0) {
    tokens_per_second_ = std::min(sample, kGrowth * kFirstSlice / slice_seconds_);
    return;
  }
  // A short slice says little: most of its time is the cost of any step. It counts by its part of what could have been taken.
  const double weight = kWeight * std::min(1.0, tokens / slice_tokens(shape.decode_rows));
  tokens_per_second_ += (std::min(sample, kGrowth * tokens_per_second_) - tokens_per_second_) * weight;
}

// While prompts keep coming no step only decodes, and what was measured grows stale: contexts get longer, other processes come and go. An
// estimate that is too low would blame prefill for the rest of the step and shrink the slice to one token, for good. A decode row takes at
// least as long as a prefill token, and the rows at most as long as the step.
void PrefillPace::bound_decode_seconds(const StepShape& shape, double seconds) {
  if (shape.decode_rows == 0) return;
  const double share = static_cast<double>(shape.decode_rows) / (shape.decode_rows + shape.prefill_tokens);
  const double least = seconds * share;
  const double known = decode_seconds(shape.decode_rows);
  if (known < least || known > seconds) {
    const double nearest = known < least ? least : seconds;
    decode_seconds_[bucket(shape.decode_rows)] = known + (nearest - known) * kWeight * share * share;  // much prefill says little
  }
}

// From the nearest measured bucket. In doubt too little, which makes the prefill look slower than it is: more rows cost at least what
// fewer do, and fewer at least their part.
double PrefillPace::decode_seconds(std::int32_t rows) const {
  if (rows == 0) return 0.0;
  const std::size_t wanted = bucket(rows);
  double least_part = 0.5;
  for (std::size_t distance = 0; distance < decode_seconds_.size(); ++distance, least_part *= 0.5) {
    if (distance <= wanted && decode_seconds_[wanted - distance] > 0.0) return decode_seconds_[wanted - distance];
    const std::size_t above = wanted + distance;
    if (above < decode_seconds_.size() && decode_seconds_[above] > 0.0) return decode_seconds_[above] * least_part;
  }
  return 0.0;
}

}  // namespace braid::sched
