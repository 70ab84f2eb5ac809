// Policies: what config.json says of them, and actions held against the distributions' own formulas.
#include "model/networks/action_choice.h"
#include "model/networks/network_shape.h"
#include "model/networks/policy_config.h"
#include "model/networks/value_shapes.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::size_t kDraws = 40'000;
constexpr float kInfinite = std::numeric_limits<float>::infinity();

Tensor floats(TensorShape shape, std::vector<float> values) {
  return {.type = ElementType::kFloat32, .shape = std::move(shape), .floats = std::move(values), .integers = {}};
}

// The same row of outputs, `rows` times.
Tensor repeated(const std::vector<float>& row, std::size_t rows) {
  Tensor tensor = Tensor::zeros(ElementType::kFloat32, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(row.size())});
  for (std::size_t i = 0; i < tensor.floats.size(); ++i) tensor.floats[i] = row[i % row.size()];
  return tensor;
}

struct Chosen {
  Tensor actions;
  Tensor log_probabilities;
};

Chosen choose(const PolicyForm& form, const ActionDraw& draw, std::vector<Tensor> outputs) {
  auto tensors = choose_actions(form, draw, std::move(outputs)).value();
  return {std::move(tensors[0]), std::move(tensors[1])};
}

double log_softmax(const std::vector<float>& logits, std::size_t action) {
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  return static_cast<double>(static_cast<long double>(logits[action]) - std::log(sum));
}

// Five standard deviations of a count.
void expect_share(std::size_t count, double probability) {
  const double expected = static_cast<double>(kDraws) * probability;
  EXPECT_NEAR(static_cast<double>(count), expected, 5.0 * std::sqrt(expected * (1.0 - probability)) + 1e-9);
}

TEST(CategoricalPolicy, DrawsAsOftenAsTheSoftmaxSaysAndTellsItsLogarithm) {
  const std::vector<float> logits{1.0F, -2.0F, 0.5F, 3.0F, -kInfinite};
  const Chosen chosen = choose({.kind = ActionKind::kCategorical}, {.seeds = {42}}, {repeated(logits, kDraws)});
  EXPECT_EQ(chosen.actions.type, ElementType::kInt64);
  EXPECT_EQ(chosen.actions.shape, TensorShape{static_cast<std::int64_t>(kDraws)});
  std::vector<std::size_t> counts(logits.size());
  for (std::size_t row = 0; row < kDraws; ++row) {
    const auto action = static_cast<std::size_t>(chosen.actions.integers[row]);
    ++counts.at(action);
    EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[row]), log_softmax(logits, action), 1e-6);
  }
  for (std::size_t action = 0; action < 4; ++action) expect_share(counts[action], std::exp(log_softmax(logits, action)));
  EXPECT_EQ(counts[4], 0U);
}

TEST(CategoricalPolicy, TakesTheMostLikelyActionOfEqualOnesTheFirst) {
  const Chosen chosen = choose({}, {.deterministic = true}, {floats({2, 3}, {0, 2, 2, 5, -1, 4})});
  EXPECT_EQ(chosen.actions.integers, (std::vector<std::int64_t>{1, 0}));
  EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[0]), log_softmax({0, 2, 2}, 1), 1e-6);
}

TEST(CategoricalPolicy, KeepsTheOuterDimensions) {
  const Chosen chosen = choose({}, {}, {Tensor::zeros(ElementType::kFloat32, {2, 3, 4})});
  EXPECT_EQ(chosen.actions.shape, (TensorShape{2, 3}));
  EXPECT_EQ(chosen.log_probabilities.shape, (TensorShape{2, 3}));
}

TEST(Policies, DrawTheSameForTheSameSeedStepAndRowAndElseSomethingElse) {
  const Tensor logits = repeated(std::vector<float>(64, 0.0F), 32);
  const auto actions = [&](const ActionDraw& draw) { return choose({}, draw, {logits}).actions.integers; };
  const auto first = actions({.seeds = {7}, .step = 3});
  EXPECT_EQ(actions({.seeds = {7}, .step = 3}), first);
  EXPECT_NE(actions({.seeds = {7}, .step = 4}), first);
  EXPECT_NE(actions({.seeds = {8}, .step = 3}), first);
  std::vector<std::uint64_t> seeds(32);
  for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = i * i + 5;
  const auto own = actions({.seeds = seeds});
  for (std::size_t row = 0; row < seeds.size(); ++row) {
    const Tensor alone = repeated(std::vector<float>(64, 0.0F), 1);
    EXPECT_EQ(choose({}, {.seeds = {seeds[row]}}, {alone}).actions.integers.front(), own[row]) << row;
  }
}

TEST(MultiDiscretePolicy, DrawsEachGroupByItselfAndAddsTheirLogarithms) {
  const std::vector<float> logits{0.5F, -0.5F, 2.0F, 0.0F, 1.0F};
  const Chosen chosen = choose({.kind = ActionKind::kMultiDiscrete, .sizes = {2, 3}}, {.seeds = {9}}, {repeated(logits, kDraws)});
  EXPECT_EQ(chosen.actions.shape, (TensorShape{static_cast<std::int64_t>(kDraws), 2}));
  std::vector<std::size_t> pairs(6);
  for (std::size_t row = 0; row < kDraws; ++row) {
    const auto first = static_cast<std::size_t>(chosen.actions.integers[2 * row]);
    const auto second = static_cast<std::size_t>(chosen.actions.integers[2 * row + 1]);
    ++pairs.at(3 * first + second);
    EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[row]),
                log_softmax({0.5F, -0.5F}, first) + log_softmax({2.0F, 0.0F, 1.0F}, second), 1e-6);
  }
  for (std::size_t i = 0; i < 6; ++i)  // independent of each other
    expect_share(pairs[i], std::exp(log_softmax({0.5F, -0.5F}, i / 3) + log_softmax({2.0F, 0.0F, 1.0F}, i % 3)));
}

TEST(BernoulliPolicy, DrawsEachBitByItsSigmoid) {
  const std::vector<float> logits{0.0F, 1.5F, -3.0F, 40.0F};
  const PolicyForm form{.kind = ActionKind::kBernoulli};
  const Chosen chosen = choose(form, {.seeds = {1}}, {repeated(logits, kDraws)});
  std::vector<std::size_t> ones(4);
  for (std::size_t row = 0; row < kDraws; ++row) {
    double expected = 0.0;
    for (std::size_t i = 0; i < 4; ++i) {
      const bool one = chosen.actions.integers[4 * row + i] == 1;
      ones[i] += one ? 1 : 0;
      expected -= std::log1p(std::exp(static_cast<double>(one ? -logits[i] : logits[i])));
    }
    EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[row]), expected, 1e-6);
  }
  for (std::size_t i = 0; i < 3; ++i) expect_share(ones[i], 1.0 / (1.0 + std::exp(-static_cast<double>(logits[i]))));
  EXPECT_EQ(ones[3], kDraws);
  EXPECT_EQ(choose(form, {.deterministic = true}, {repeated(logits, 1)}).actions.integers, (std::vector<std::int64_t>{0, 1, 0, 1}));
}

// Of two Gaussians that are independent of each other.
double log_normal(double x, double mean, double log_deviation) {
  const double z = (x - mean) / std::exp(log_deviation);
  return -0.5 * z * z - log_deviation - 0.5 * std::log(2.0 * std::numbers::pi);
}

TEST(GaussianPolicy, HasTheMeanTheDeviationAndTheDensity) {
  const std::vector<float> means{1.0F, -2.0F};
  const std::vector<double> log_deviations{0.5, -1.25};
  const PolicyForm form{.kind = ActionKind::kGaussian, .fixed_deviations = log_deviations};
  const Chosen chosen = choose(form, {.seeds = {3}}, {repeated(means, kDraws)});
  EXPECT_EQ(chosen.actions.type, ElementType::kFloat32);
  double sums[2] = {}, squares[2] = {}, product = 0.0;
  for (std::size_t row = 0; row < kDraws; ++row) {
    double density = 0.0;
    double normal[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const auto action = static_cast<double>(chosen.actions.floats[2 * row + i]);
      normal[i] = (action - static_cast<double>(means[i])) / std::exp(log_deviations[i]);
      sums[i] += normal[i];
      squares[i] += normal[i] * normal[i];
      density += log_normal(action, static_cast<double>(means[i]), log_deviations[i]);
    }
    product += normal[0] * normal[1];
    EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[row]), density, 1e-5);
  }
  const double n = static_cast<double>(kDraws);
  for (std::size_t i = 0; i < 2; ++i) {  // five standard errors each
    EXPECT_NEAR(sums[i] / n, 0.0, 5.0 / std::sqrt(n));
    EXPECT_NEAR(squares[i] / n, 1.0, 5.0 * std::sqrt(2.0 / n));
  }
  EXPECT_NEAR(product / n, 0.0, 5.0 / std::sqrt(n));
  EXPECT_EQ(choose(form, {.deterministic = true}, {repeated(means, 1)}).actions.floats, means);
}

TEST(GaussianPolicy, TakesDeviationsFromTheNetworkWithinTheirBounds) {
  const PolicyForm form{.kind = ActionKind::kGaussian, .deviations = 1, .least_deviation = -1.0, .most_deviation = 0.5};
  const Chosen chosen = choose(form, {.seeds = {3}}, {floats({1, 3}, {0, 0, 0}), floats({1, 3}, {-9, 0.25F, 9})});
  double density = 0.0;
  const double bounded[3] = {-1.0, 0.25, 0.5};
  for (std::size_t i = 0; i < 3; ++i) density += log_normal(static_cast<double>(chosen.actions.floats[i]), 0.0, bounded[i]);
  EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[0]), density, 1e-5);
}

TEST(SquashedGaussianPolicy, StaysWithinItsBoundsWithTheDensityOfTheStretchedTangent) {
  const std::vector<float> means{0.25F, -0.75F};
  const PolicyForm form{.kind = ActionKind::kSquashedGaussian, .fixed_deviations = {-0.5}, .low = {-2.0, 0.0}, .high = {2.0, 5.0}};
  const Chosen chosen = choose(form, {.seeds = {11}}, {repeated(means, kDraws)});
  std::size_t below_median[2] = {};
  for (std::size_t row = 0; row < kDraws; ++row) {
    double density = 0.0;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto action = static_cast<double>(chosen.actions.floats[2 * row + i]);
      ASSERT_GE(action, form.low[i]);
      ASSERT_LE(action, form.high[i]);
      const double half = 0.5 * (form.high[i] - form.low[i]);
      const double y = (action - form.low[i]) / half - 1.0;
      const double median = std::tanh(static_cast<double>(means[i]));
      below_median[i] += y < median ? 1 : 0;
      density += log_normal(std::atanh(y), static_cast<double>(means[i]), -0.5) - std::log(half * (1.0 - y * y));
    }
    // An action is a float32: near the bounds its last bit is much of what is left of 1 - y².
    EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[row]), density, 1e-3 * std::max(1.0, std::fabs(density)));
  }
  for (const std::size_t count : below_median) expect_share(count, 0.5);
  const Chosen mean = choose(form, {.deterministic = true}, {repeated(means, 1)});
  EXPECT_NEAR(static_cast<double>(mean.actions.floats[0]), 2.0 * std::tanh(0.25), 1e-6);
  EXPECT_NEAR(static_cast<double>(mean.actions.floats[1]), 2.5 * (1.0 + std::tanh(-0.75)), 1e-6);
}

TEST(SquashedGaussianPolicy, HasAFiniteDensityWhereTheTangentIsOne) {
  const PolicyForm form{.kind = ActionKind::kSquashedGaussian, .fixed_deviations = {0.0}, .low = {-1.0}, .high = {1.0}};
  const Chosen chosen = choose(form, {.deterministic = true}, {floats({2, 1}, {30.0F, 1e-4F})});
  EXPECT_EQ(chosen.actions.floats[0], 1.0F);
  // log(1 - tanh(x)²) is 2 (log 2 - x) here.
  EXPECT_NEAR(static_cast<double>(chosen.log_probabilities.floats[0]), log_normal(0.0, 0.0, 0.0) - 2.0 * (std::log(2.0) - 30.0), 1e-4);
  EXPECT_FLOAT_EQ(chosen.actions.floats[1], 1e-4F);
}

TEST(Policies, TellWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refusal = [](const PolicyForm& form, std::vector<float> row) {
    const auto width = static_cast<std::int64_t>(row.size());
    return choose_actions(form, {}, {floats({1, width}, std::move(row))}).error().code;
  };
  EXPECT_EQ(refusal({}, {0, nan}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({}, {0, kInfinite}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({}, {-kInfinite, -kInfinite}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({.kind = ActionKind::kBernoulli}, {nan}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal({.kind = ActionKind::kGaussian, .fixed_deviations = {0.0}}, {kInfinite}), ErrorCode::kInvalidArgument);
  const auto seeds = choose_actions({}, {.seeds = {1, 2}}, {Tensor::zeros(ElementType::kFloat32, {3, 2})});
  EXPECT_EQ(seeds.error().param, "seed");
}

TEST(Policies, DrawManyRowsInPieces) {
  constexpr std::size_t kRows = 100'000;
  Tensor logits = Tensor::zeros(ElementType::kFloat32, {kRows, 4});
  for (std::size_t i = 0; i < logits.floats.size(); ++i) logits.floats[i] = static_cast<float>(i * 7919 % 101) / 25.0F;
  ActionDraw draw;
  draw.seeds.clear();
  for (std::size_t row = 0; row < kRows; ++row) draw.seeds.push_back(row * 31);
  const PolicyForm form;
  ActionRun run(form, draw, {logits});
  int pieces = 0;
  for (; !run.done(); ++pieces) ASSERT_TRUE(run.advance());
  EXPECT_GT(pieces, 10);
  const std::vector<Tensor> all = run.take();
  ASSERT_EQ(all.size(), 2U);
  for (const std::size_t row : {std::size_t{0}, std::size_t{77'777}, kRows - 1}) {
    const auto at = logits.floats.begin() + static_cast<std::ptrdiff_t>(row * 4);
    const Chosen alone = choose(form, {.seeds = {draw.seeds[row]}}, {floats({1, 4}, {at, at + 4})});
    EXPECT_EQ(all[0].integers[row], alone.actions.integers[0]) << row;
    EXPECT_EQ(all[1].floats[row], alone.log_probabilities.floats[0]) << row;
  }
}

TEST(Policies, PassValuesAndStatesOn) {
  const PolicyForm form{.parameters = 1, .value = 0, .states = {{1, 2}}};
  EXPECT_EQ(outputs_of_policy(form), (std::vector<std::size_t>{1, 0, 2}));
  const auto tensors =
      choose_actions(form, {}, {Tensor::zeros(ElementType::kFloat32, {2, 3}), floats({2, 1}, {4, 5}), floats({1, 2}, {6, 7})}).value();
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors[2].shape, TensorShape{2});
  EXPECT_EQ(tensors[2].floats, (std::vector<float>{4, 5}));
  EXPECT_EQ(tensors[3].floats, (std::vector<float>{6, 7}));
}

constexpr const char* kNetwork =
    R"({{"model_type": "braid-net", "inputs": {{"x": {{"shape": ["batch", 4]}}, "s": {{"shape": ["batch", 4], "optional": true}}}},
  "layers": [{{"name": "a", "type": "tanh", "input": "x"}}, {{"name": "b", "type": "relu", "input": "s"}}],
  "outputs": {{"a": "a", "b": "b"}}, "policy": {}}})";

Result<PolicyForm> read_form(const std::string& policy) {
  const auto shape = read_network_shape(fmt::format(fmt::runtime(kNetwork), policy));
  if (!shape) return shape.error();
  const std::vector<LayerTensors> tensors(shape->layers.size());
  const auto values = infer_shapes(*shape, tensors).value();
  if (const auto checked = check_policy(*shape, values); !checked) return checked.error();
  return *shape->policy;
}

TEST(PolicyConfig, NamesOutputsAndStates) {
  const PolicyForm form = read_form(R"({"distribution": "tanh_gaussian", "mean": "a", "log_std": "b", "log_std_range": [-20, 2],
                                   "low": -2, "high": [1, 2, 3, 4], "states": {"s": "b"}})")
                              .value();
  EXPECT_EQ(form.kind, ActionKind::kSquashedGaussian);
  EXPECT_EQ(form.parameters, 0U);
  EXPECT_EQ(form.deviations, 1U);
  EXPECT_EQ(form.most_deviation, 2.0);
  EXPECT_EQ(form.high, (std::vector<double>{1, 2, 3, 4}));
  ASSERT_EQ(form.states.size(), 1U);
  EXPECT_EQ(form.states[0].input, 1U);
  EXPECT_EQ(read_form(R"({"logits": "a"})").value().kind, ActionKind::kCategorical);
}

TEST(PolicyConfig, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> faults[] = {
      {"[]", "policy: expected an object"},
      {R"({"distribution": "beta", "logits": "a"})", "policy.distribution: 'beta' is none of"},
      {R"({"logits": "c"})", "policy.logits: 'c' is no output"},
      {R"({"mean": "a"})", "policy.logits: missing"},
      {R"({"logits": "a", "temperature": 1})", "policy.temperature: is not known here"},
      {R"({"distribution": "multi_discrete", "logits": "a", "sizes": [2, 3]})", "policy.sizes: their sum is 5, and there are 4 logits"},
      {R"({"distribution": "gaussian", "mean": "a"})", "policy.log_std: missing"},
      {R"({"distribution": "gaussian", "mean": "a", "log_std": [0, 0]})", "policy.log_std: there are 2 numbers for 4 actions"},
      {R"({"distribution": "gaussian", "mean": "a", "log_std": 0, "log_std_range": [2, 1]})",
       "policy.log_std_range: expected [least, most]"},
      {R"({"distribution": "tanh_gaussian", "mean": "a", "log_std": 0, "low": 1})", "policy.high: expected more than policy.low"},
      {R"({"logits": "a", "value": "b"})", "policy.value: expected one number for each row"},
      {R"({"logits": "a", "states": {"t": "b"}})", "policy.states.t: there is no such input"},
      {R"({"logits": "a", "states": {"x": "b"}})", "policy.states.x: the input of a state is optional"},
  };
  for (const auto& [policy, message] : faults) {
    const auto form = read_form(policy);
    ASSERT_FALSE(form) << policy;
    EXPECT_NE(form.error().message.find(message), std::string::npos) << form.error().message;
  }
}

}  // namespace
}  // namespace braid::model
