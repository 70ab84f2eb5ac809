#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace braid::model {
namespace {

// YaRN's ramp: 1 for dimensions that turn often within the original context (left as they are), 0 for those that turn less than
// once (interpolated in full).
double yarn_ramp(const RopeParameters& rope, std::int32_t pair) {
  const auto dimension_of = [&](double turns) {
    return rope.rotated * fixed_log(rope.original_context / (turns * 2.0 * std::numbers::pi)) / (2.0 * fixed_log(rope.base));
  };
  const double first = dimension_of(rope.yarn_beta_fast);
  const double last = dimension_of(rope.yarn_beta_slow);
  const double low = std::max(0.0, rope.yarn_whole ? std::floor(first) : first);
  const double high = std::min(rope.rotated - 1.0, rope.yarn_whole ? std::ceil(last) : last);
  return 1.0 - std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeParameters& rope, std::span<const float> divisors) {
  RopeFrequencies result;
  result.magnitude = rope.attention_factor;
  const double log_base = fixed_log(rope.base);
  for (std::int32_t pair = 0; pair < rope.rotated / 2; ++pair) {
    double radians = fixed_exp(-2.0 * pair / rope.rotated * log_base);
    if (!divisors.empty()) radians /= static_cast<double>(divisors[static_cast<std::size_t>(pair)]);
    if (rope.scaling == RopeScaling::kLinear) radians /= rope.factor;
    if (rope.scaling == RopeScaling::kYarn) {
      const double kept = yarn_ramp(rope, pair) * rope.yarn_extrapolation;
      radians = radians / rope.factor * (1.0 - kept) + radians * kept;
    }
    result.radians.push_back(radians);
  }
  if (rope.scaling == RopeScaling::kYarn && rope.yarn_extrapolation != 0.0)
    result.magnitude *= 1.0 + 0.1 * fixed_log(std::max(1.0, rope.factor));
  return result;
}

std::vector<RopeAxis> rope_axes(const RopeParameters& rope) {
  const auto [by_position, by_row, by_column] = rope.sections;
  if (by_row == 0 && by_column == 0) return {};
  std::vector<RopeAxis> axes(static_cast<std::size_t>(rope.rotated / 2), RopeAxis::kPosition);
  for (std::int32_t pair = 0; pair < rope.rotated / 2; ++pair) {
    RopeAxis& axis = axes[static_cast<std::size_t>(pair)];
    if (rope.mixed) {
      if (pair % 3 == 1 && pair < 3 * by_row) axis = RopeAxis::kRow;
      if (pair % 3 == 2 && pair < 3 * by_column) axis = RopeAxis::kColumn;
    } else if (pair >= by_position) {
      axis = pair < by_position + by_row ? RopeAxis::kRow : RopeAxis::kColumn;
    }
  }
  return axes;
}

RopeTable::RopeTable(const RopeFrequencies& frequencies, std::int32_t context, std::vector<RopeAxis> axes)
    : pairs_(static_cast<std::int32_t>(frequencies.radians.size())), magnitude_(frequencies.magnitude), axes_(std::move(axes)) {
  const auto add_position = [&](std::vector<SinCos>& table, double position) {
    for (const double radians : frequencies.radians) table.push_back(fixed_sin_cos(position * radians));
  };
  for (std::int32_t i = 0; i < kFine; ++i) add_position(fine_, i);
  for (std::int32_t i = 0; i < context; i += kFine) add_position(coarse_, i);
}

void RopeTable::fill(std::int32_t position, float* cos, float* sin) const {
  const SinCos* coarse = coarse_.data() + std::ptrdiff_t{position / kFine} * pairs_;
  const SinCos* fine = fine_.data() + std::ptrdiff_t{position % kFine} * pairs_;
  for (std::int32_t i = 0; i < pairs_; ++i) {
    cos[i] = static_cast<float>((coarse[i].cos * fine[i].cos - coarse[i].sin * fine[i].sin) * magnitude_);
    sin[i] = static_cast<float>((coarse[i].sin * fine[i].cos + coarse[i].cos * fine[i].sin) * magnitude_);
  }
}

void RopeTable::fill_pair(std::int32_t position, std::int32_t pair, float* cos, float* sin) const {
  const SinCos& coarse = coarse_[static_cast<std::size_t>(position / kFine * pairs_ + pair)];
  const SinCos& fine = fine_[static_cast<std::size_t>(position % kFine * pairs_ + pair)];
  cos[pair] = static_cast<float>((coarse.cos * fine.cos - coarse.sin * fine.sin) * magnitude_);
  sin[pair] = static_cast<float>((coarse.sin * fine.cos + coarse.cos * fine.sin) * magnitude_);
}

void RopeTable::fill(std::int32_t position, std::int32_t down, std::int32_t across, float* cos, float* sin) const {
  fill(position, cos, sin);
  if (axes_.empty() || (down == 0 && across == 0)) return;
  for (std::int32_t pair = 0; pair < pairs_; ++pair) {
    const RopeAxis axis = axes_[static_cast<std::size_t>(pair)];
    if (axis != RopeAxis::kPosition) fill_pair(position + (axis == RopeAxis::kRow ? down : across), pair, cos, sin);
  }
}

std::vector<RopeTable> rope_tables(const ModelShape& model, std::span<const std::vector<float>> divisors,
                                   std::span<const std::vector<float>> stretched, std::int32_t context) {
  std::vector<RopeTable> tables;
  const auto add = [&](std::size_t i, const std::vector<float>& own) {
    tables.emplace_back(rope_frequencies(model.rotary[i], own), context, rope_axes(model.rotary[i]));
  };
  for (std::size_t i = 0; i < model.rotary.size(); ++i) add(i, divisors[i]);
  if (std::ranges::all_of(stretched, [](const std::vector<float>& own) { return own.empty(); })) return tables;
  for (std::size_t i = 0; i < model.rotary.size(); ++i) add(i, stretched[i].empty() ? divisors[i] : stretched[i]);
  return tables;
}

}  // namespace braid::model
