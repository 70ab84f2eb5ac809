#include "sched/prefill_pace.h"

#include <algorithm>

namespace braid::sched {

// What prefill may add to a step with such decode rows.
double PrefillPace::room_seconds(const StepShape& shape) const {
  if (shape.decode_rows == 0 && engines_ == 1) return slice_seconds_ * kAloneFactor;
  if (shape.decode_rows == 0 || target_seconds_ == 0.0) return slice_seconds_ / engines_;
  return std::max(target_seconds() - cost_.decode_seconds(shape), target_seconds() * kLeastShare);
}

std::int32_t PrefillPace::slice_tokens(const StepShape& shape, std::int32_t position) const {
  if (wants_decode_alone_ && shape.decode_rows > 0) return 0;
  const bool is_first = shape.prefill_tokens == 0;
  const std::int32_t most = kGrowth * largest_slice_ - shape.prefill_tokens;
  const double room = room_seconds(shape);
  const auto fits = [&](std::int32_t tokens) {
    StepShape with = shape;
    with.add_prefill(position, tokens);
    const double seconds = cost_.prefill_seconds(with);
    if (seconds + std::min(kCaution * cost_.doubt_seconds(with), kMostCaution * room) <= room) return true;
    const double reading = cost_.reading_seconds(with);
    return is_first && seconds - reading <= kLeastOwn * reading;
  };
  if (!cost_.is_known() || most <= 0) return std::max(0, most);
  std::int32_t low = is_first ? 1 : 0;
  std::int32_t high = std::max(low, most);
  while (low < high) {
    const std::int32_t middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

void PrefillPace::observe(const StepShape& shape, double seconds) {
  if (seconds <= 0.0) return;
  cost_.observe(shape, seconds);
  mixed_steps_ = shape.prefill_tokens == 0 || shape.decode_rows == 0 ? 0 : mixed_steps_ + 1;
  wants_decode_alone_ = mixed_steps_ == kMostMixed;
  if (wants_decode_alone_) mixed_steps_ = 0;
  largest_slice_ = std::max(largest_slice_, shape.prefill_tokens);
  most_decoded_ = std::max(most_decoded_, shape.decode_rows);
  if (shape.decode_rows > 0) read_per_row_ = shape.decode_read / shape.decode_rows;
  const double prefill = cost_.prefill_seconds(shape);
  if (shape.prefill_tokens > 0 && prefill > 0.0) tokens_per_second_ = shape.prefill_tokens / prefill;
}

// Prefill does not wait for the next one without it, which may tell nothing either, and so on for ever; it makes way again soon.
void PrefillPace::pass_over(const StepShape& shape) {
  most_decoded_ = std::max(most_decoded_, shape.decode_rows);
  if (!wants_decode_alone_ || shape.prefill_tokens > 0) return;
  wants_decode_alone_ = false;
  mixed_steps_ = kMostMixed - 1;
}

// What a few rows cost tells little of many: the first prefill alone would let everybody in, who then decode to their ends.
std::size_t PrefillPace::most_rows(std::size_t most) const {
  if (target_seconds_ == 0.0) return most;
  if (!cost_.is_known()) return std::min(kFirstRows, most);
  const std::size_t tried = std::max(kFirstRows, kRowGrowth * static_cast<std::size_t>(most_decoded_));
  const auto fits = [&](std::size_t rows) {
    const auto count = static_cast<std::int32_t>(rows);
    return cost_.decode_seconds({.decode_rows = count, .decode_read = count * read_per_row_}) <= target_seconds();
  };
  std::size_t low = 1;
  std::size_t high = std::min(most, tried);
  while (low < high) {
    const std::size_t middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return std::min(low, most);
}

}  // namespace braid::sched
