#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

RopeTable::RopeTable(const RopeFrequencies& frequencies, std::int32_t context)
    : pairs_(static_cast<std::int32_t>(frequencies.radians.size())), magnitude_(frequencies.magnitude) {
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

std::vector<RopeTable> rope_tables(const ModelShape& model, std::span<const std::vector<float>> divisors, std::int32_t context) {
  std::vector<RopeTable> tables;
  for (std::size_t i = 0; i < model.rotary.size(); ++i) tables.emplace_back(rope_frequencies(model.rotary[i], divisors[i]), context);
  return tables;
}

}  // namespace braid::model
