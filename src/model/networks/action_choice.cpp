#include "model/networks/action_choice.h"

#include "model/deterministic_math.h"
#include "model/networks/layer_run.h"
#include "model/sampling/philox.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <numbers>
#include <span>
#include <utility>

namespace braid::model {
namespace {

// What is drawn for one row.
class RowDraw {
 public:
  RowDraw(const ActionDraw& draw, std::size_t row)
      : deterministic(draw.deterministic), seed_(draw.seeds.size() == 1 ? draw.seeds.front() : draw.seeds[row]),
        choice_(draw.seeds.size() == 1 ? static_cast<std::uint32_t>(row) : 0), step_(draw.step) {}

  double uniform(std::size_t index) const { return uniform_draw(seed_, choice_, step_, static_cast<std::uint32_t>(index)); }  // [0, 1)

  // Box and Muller: two neighbours share two uniform draws.
  double normal(std::size_t index) const {
    const std::size_t pair = index / 2 * 2;
    const double radius = std::sqrt(-2.0 * fixed_log(1.0 - uniform(pair)));
    const SinCos angle = fixed_sin_cos(2.0 * std::numbers::pi * uniform(pair + 1));
    return radius * (index == pair ? angle.cos : angle.sin);
  }

  const bool deterministic;

 private:
  std::uint64_t seed_;
  std::uint32_t choice_;
  std::int64_t step_;
};

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

struct Drawn {
  std::size_t action = 0;
  double log_probability = 0.0;  // kNoNumber: what the network gave is none
};

// In float64, unlike the activation of that name.
double log_one_plus_exp(double x) { return std::max(x, 0.0) + fixed_log(1.0 + fixed_exp(-std::fabs(x))); }

double fixed_tanh(double x) {
  if (std::fabs(x) < 0.01) return x * (1.0 - x * x * (1.0 / 3.0 - x * x * 2.0 / 15.0));
  const double e = fixed_exp(-2.0 * std::fabs(x));
  return std::copysign((1.0 - e) / (1.0 + e), x);
}

// Minus infinity is an action that there is not, as long as another one is left.
Drawn draw_category(std::span<const float> logits, const RowDraw& draw, std::size_t index) {
  if (std::ranges::any_of(logits, [](float logit) { return std::isnan(logit); })) return {0, kNoNumber};
  const auto best = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  const auto highest = static_cast<double>(logits[best]);
  if (std::isinf(highest)) return {best, kNoNumber};
  const auto weight = [&](std::size_t i) { return fixed_exp(static_cast<double>(logits[i]) - highest); };
  double total = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) total += weight(i);
  Drawn drawn{.action = best};
  if (!draw.deterministic) {
    const double wanted = draw.uniform(index) * total;
    double sum = 0.0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double own = weight(i);
      if (own > 0.0) drawn.action = i;  // rounding may leave `wanted` above all sums
      sum += own;
      if (sum > wanted) break;
    }
  }
  drawn.log_probability = static_cast<double>(logits[drawn.action]) - highest - fixed_log(total);
  return drawn;
}

Drawn draw_bit(double logit, const RowDraw& draw, std::size_t index) {
  if (std::isnan(logit)) return {0, kNoNumber};
  const double probability = fixed_exp(-log_one_plus_exp(-logit));
  const bool is_one = draw.deterministic ? logit > 0.0 : draw.uniform(index) < probability;
  return {is_one ? std::size_t{1} : std::size_t{0}, -log_one_plus_exp(is_one ? -logit : logit)};
}

double one_or_own(const std::vector<double>& numbers, std::size_t i) { return numbers.size() == 1 ? numbers.front() : numbers[i]; }

// Multiplications of a product that drawing an action takes as long as, where a number of its parameters is read.
constexpr std::int64_t kDrawWork = 4 * kExactFunctionWork;

}  // namespace

ActionRun::ActionRun(const PolicyForm& form, ActionDraw draw, std::vector<Tensor> outputs)
    : form_(form), draw_(std::move(draw)), outputs_(std::move(outputs)), width_(static_cast<std::size_t>(parameters().width())),
      rows_(static_cast<std::size_t>(parameters().rows())) {
  const TensorShape outer(parameters().shape.begin(), parameters().shape.end() - 1);
  log_probabilities_.shape = outer;
  actions_.shape = outer;
  if (form_.kind != ActionKind::kCategorical) actions_.shape.push_back(static_cast<std::int64_t>(actions_of_row()));
  actions_.type = is_gaussian() ? ElementType::kFloat32 : ElementType::kInt64;
}

Result<void> ActionRun::advance() {
  if (draw_.seeds.size() != 1 && draw_.seeds.size() != rows_)
    return invalid_argument(fmt::format("there are {} seeds for {} rows of actions", draw_.seeds.size(), rows_), "seed");
  if (!make_room(log_probabilities_) || !make_room(actions_)) return {};
  const auto piece = static_cast<std::size_t>(parts_of_piece(static_cast<std::int64_t>(width_) * kDrawWork));
  for (const std::size_t end = std::min(rows_, next_row_ + piece); next_row_ < end; ++next_row_) {
    const double log_probability = is_gaussian() ? draw_numbers(next_row_) : draw_choices(next_row_);
    if (std::isnan(log_probability))
      return invalid_argument(fmt::format("the network's outputs for row {} are no numbers to draw an action from", next_row_),
                              "observations");
    log_probabilities_.floats[next_row_] = static_cast<float>(log_probability);
  }
  return {};
}

std::vector<Tensor> ActionRun::take() {
  const TensorShape rows = log_probabilities_.shape;
  std::vector<Tensor> answer;
  answer.push_back(std::move(actions_));
  answer.push_back(std::move(log_probabilities_));
  auto rest = outputs_.begin() + (form_.deviations ? 2 : 1);
  if (form_.value) rest->shape = rows;  // without a last dimension of 1
  std::move(rest, outputs_.end(), std::back_inserter(answer));
  return answer;
}

bool ActionRun::is_gaussian() const { return form_.kind == ActionKind::kGaussian || form_.kind == ActionKind::kSquashedGaussian; }

std::size_t ActionRun::actions_of_row() const { return form_.kind == ActionKind::kMultiDiscrete ? form_.sizes.size() : width_; }

std::span<const float> ActionRun::parameters_of(std::size_t row) const {
  return std::span(parameters().floats).subspan(row * width_, width_);
}

double ActionRun::draw_choices(std::size_t row) {
  const RowDraw draw(draw_, row);
  std::span<const float> logits = parameters_of(row);
  double sum = 0.0;
  const std::size_t count = form_.kind == ActionKind::kCategorical ? 1 : actions_of_row();
  for (std::size_t i = 0; i < count; ++i) {
    Drawn drawn;
    if (form_.kind == ActionKind::kBernoulli) {
      drawn = draw_bit(static_cast<double>(logits[i]), draw, i);
    } else {
      const std::size_t size = form_.kind == ActionKind::kCategorical ? width_ : static_cast<std::size_t>(form_.sizes[i]);
      drawn = draw_category(logits.first(size), draw, i);
      logits = logits.subspan(size);
    }
    actions_.integers[row * count + i] = static_cast<std::int64_t>(drawn.action);
    sum += drawn.log_probability;
  }
  return sum;
}

double ActionRun::deviation(std::size_t row, std::size_t i) const {
  const double value = form_.deviations ? static_cast<double>(outputs_[1].floats[row * width_ + i]) : one_or_own(form_.fixed_deviations, i);
  return form_.least_deviation ? std::max(*form_.least_deviation, std::min(value, *form_.most_deviation)) : value;
}

double ActionRun::draw_numbers(std::size_t row) {
  const RowDraw draw(draw_, row);
  const double log_root = 0.5 * fixed_log(2.0 * std::numbers::pi);
  double sum = 0.0;
  for (std::size_t i = 0; i < width_; ++i) {
    const double log_deviation = deviation(row, i);
    const auto mean = static_cast<double>(parameters_of(row)[i]);
    if (!std::isfinite(mean) || !std::isfinite(log_deviation)) return kNoNumber;
    const double normal = draw.deterministic ? 0.0 : draw.normal(i);
    double action = mean + fixed_exp(log_deviation) * normal;
    sum += -0.5 * normal * normal - log_deviation - log_root;
    if (form_.kind == ActionKind::kSquashedGaussian) {
      const double low = one_or_own(form_.low, i);
      const double half = 0.5 * (one_or_own(form_.high, i) - low);
      // The derivative of the stretched tangent: half * (1 - tanh(x)^2), whose logarithm loses no digits so.
      sum -= fixed_log(half) + 2.0 * (std::numbers::ln2 - action - log_one_plus_exp(-2.0 * action));
      action = low + half * (1.0 + fixed_tanh(action));
    }
    actions_.floats[row * width_ + i] = static_cast<float>(action);
  }
  return sum;
}

std::vector<std::size_t> outputs_of_policy(const PolicyForm& form) {
  std::vector<std::size_t> outputs{form.parameters};
  if (form.deviations) outputs.push_back(*form.deviations);
  if (form.value) outputs.push_back(*form.value);
  for (const PolicyState& state : form.states) outputs.push_back(state.output);
  return outputs;
}

Result<std::vector<Tensor>> choose_actions(const PolicyForm& form, const ActionDraw& draw, std::vector<Tensor> outputs) {
  ActionRun run(form, draw, std::move(outputs));
  do {
    if (const Result<void> advanced = run.advance(); !advanced) return advanced.error();
  } while (!run.done());
  return run.take();
}

}  // namespace braid::model
