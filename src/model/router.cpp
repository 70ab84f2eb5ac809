#include "model/router.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace braid::model {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::size_t best_of(std::span<const float> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());  // the first of equals
}

void soft_max(const kernels::KernelTable& table, std::span<float> values) {
  const float top = values[best_of(values)];
  const float sum = table.exp_sum(values.data(), static_cast<std::int64_t>(values.size()), 1.0F, top, values.data());
  for (float& value : values) value /= sum;
}

void sigmoid(const kernels::KernelTable& table, std::span<float> values) {
  table.exp_sum(values.data(), static_cast<std::int64_t>(values.size()), -1.0F, 0.0F, values.data());
  for (float& value : values) value = 1.0F / (1.0F + value);
}

// The sum of a group's best values, which are looked for one after the other.
float group_value(std::span<const float> members, std::int32_t count) {
  float sum = 0.0F;
  float last = std::numeric_limits<float>::infinity();
  std::size_t last_index = 0;
  for (std::int32_t taken = 0; taken < count; ++taken) {
    std::size_t best = members.size();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool behind = members[i] < last || (members[i] == last && i > last_index);
      if ((taken == 0 || behind) && (best == members.size() || members[i] > members[best])) best = i;
    }
    if (best == members.size()) break;
    last = members[best];
    last_index = best;
    sum += last;
  }
  return sum;
}

// Leaves kNever where a group is none of the best.
void keep_best_groups(const RouterShape& shape, std::span<float> values, std::span<float> groups) {
  const std::size_t size = values.size() / groups.size();
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = group_value(values.subspan(i * size, size), shape.group_best);
  for (std::int32_t kept = 0; kept < shape.chosen_groups; ++kept) groups[best_of(groups)] = kNever;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (groups[i] != kNever) std::ranges::fill(values.subspan(i * size, size), kNever);
}

// The best of `values`, best first; they are overwritten.
void take_best(std::span<float> values, std::span<ExpertChoice> choices) {
  for (ExpertChoice& choice : choices) {
    const std::size_t best = best_of(values);
    choice.expert = static_cast<std::int32_t>(best);
    values[best] = kNever;
  }
}

void mix_sparsely(const kernels::KernelTable& table, const RouterShape& shape, std::span<const float> scores, std::span<float> left,
                  std::span<float> near, std::span<ExpertChoice> choices) {
  std::ranges::copy(scores, left.begin());
  for (ExpertChoice& choice : choices) {
    const std::size_t best = best_of(left);
    const float top = left[best];
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool far = (top - scores[i]) / std::max(std::fabs(scores[i]), top) > 2.0F * shape.jitter;
      near[i] = far ? kNever : left[i];
    }
    soft_max(table, near);
    choice = {static_cast<std::int32_t>(best), near[best]};
    left[best] = kNever;
  }
}

void weigh(const kernels::KernelTable& table, const RouterShape& shape, std::span<const float> values, std::span<float> scratch,
           std::span<ExpertChoice> choices) {
  const std::span<float> weights = scratch.first(choices.size());
  for (std::size_t i = 0; i < choices.size(); ++i) weights[i] = values[static_cast<std::size_t>(choices[i].expert)];
  if (shape.scoring == RouterShape::Scoring::kSoftmaxOfChosen) soft_max(table, weights);
  float sum = shape.sum_epsilon;
  for (const float weight : weights) sum += weight;
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i].weight = (shape.normalised ? weights[i] / sum : weights[i]) * shape.scale;
}

}  // namespace

void choose_experts(const kernels::KernelTable& table, const RouterShape& shape, std::span<float> scores, std::span<const float> correction,
                    std::span<float> scratch, std::span<ExpertChoice> choices) noexcept {
  using Scoring = RouterShape::Scoring;
  assert(choices.size() <= scores.size());
  if (!std::ranges::all_of(scores, [](float score) { return std::isfinite(score); })) {
    for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = {static_cast<std::int32_t>(i), std::numeric_limits<float>::quiet_NaN()};
    return;
  }
  const std::span<float> values = scratch.first(scores.size());
  if (shape.scoring == Scoring::kSparseMixer)
    return mix_sparsely(table, shape, scores, values, scratch.subspan(scores.size(), scores.size()), choices);
  if (shape.scoring == Scoring::kSoftmax) soft_max(table, scores);
  if (shape.scoring == Scoring::kSigmoid) sigmoid(table, scores);
  std::ranges::copy(scores, values.begin());
  if (!correction.empty()) std::ranges::transform(values, correction, values.begin(), std::plus<>());
  if (shape.groups > 1) keep_best_groups(shape, values, scratch.subspan(scores.size(), static_cast<std::size_t>(shape.groups)));
  take_best(values, choices);
  weigh(table, shape, scores, scratch, choices);
}

}  // namespace braid::model
