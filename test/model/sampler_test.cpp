#include "model/sampling/sampler.h"

#include "model/forward_harness.h"
#include "model/sampling/penalties.h"
#include "model/sampling_reference.h"

#include <cmath>
#include <limits>
#include <random>

namespace braid::model::test {
namespace {

std::vector<float> random_logits(std::size_t count, float spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

TokenId draw(Sampler& sampler, const std::vector<float>& logits, const SamplingParams& params, std::int64_t position,
             std::span<const TokenId> banned = {}) {
  return sampler.sample(logits, {.params = params, .position = position, .banned = banned}).value().token;
}

struct Strategy {
  const char* name;
  SamplingParams params;
  std::size_t vocab;
  float spread;
};

class SamplerStrategy : public testing::TestWithParam<Strategy> {};

// Pearson's chi-squared of what was drawn; cells that expect fewer than 10 are pooled. The bound is the mean plus five standard
// deviations of the distribution, and the seeds are fixed.
void expect_drawn_from(const std::vector<double>& expected, const std::vector<int>& seen, int draws) {
  double chi = 0.0, pooled_expected = 0.0;
  int pooled_seen = 0, cells = 0;
  const auto add = [&](double count, double expectation) {
    chi += (count - expectation) * (count - expectation) / expectation;
    cells += 1;
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0.0) {
      EXPECT_EQ(seen[i], 0) << "token " << i << " was cut and drawn";
      continue;
    }
    if (expected[i] * draws >= 10.0) {
      add(seen[i], expected[i] * draws);
    } else {
      pooled_expected += expected[i] * draws;
      pooled_seen += seen[i];
    }
  }
  if (pooled_expected >= 1.0) add(pooled_seen, pooled_expected);
  const double freedom = std::max(1, cells - 1);
  EXPECT_LE(chi, freedom + 5.0 * std::sqrt(2.0 * freedom)) << cells << " cells";
}

TEST_P(SamplerStrategy, DrawsFromItsDistribution) {
  constexpr int kDraws = 25000;
  const Strategy& strategy = GetParam();
  const std::vector<float> logits = random_logits(strategy.vocab, strategy.spread, 11);
  const std::vector<double> expected = defined_distribution(adjusted_logits(logits, strategy.params, {}), strategy.params);
  Sampler sampler(kernels::best_kernel_table(), static_cast<std::int32_t>(strategy.vocab), 16);
  std::vector<int> seen(strategy.vocab, 0);
  SamplingParams params = strategy.params;
  for (int i = 0; i < kDraws; ++i) {
    params.seed = 42 + static_cast<std::uint64_t>(i % 10);
    params.choice = static_cast<std::uint32_t>(i / 10 % 4);
    seen[static_cast<std::size_t>(draw(sampler, logits, params, i / 40))] += 1;
  }
  expect_drawn_from(expected, seen, kDraws);
}

INSTANTIATE_TEST_SUITE_P(Strategies, SamplerStrategy,
                         testing::Values(Strategy{"plain", {}, 300, 2.0F}, Strategy{"manyTokens", {}, 1500, 3.0F},
                                         Strategy{"cool", {.temperature = 0.6F}, 300, 2.0F},
                                         Strategy{"hot", {.temperature = 1.7F}, 300, 2.0F}, Strategy{"topK", {.top_k = 20}, 300, 1.0F},
                                         Strategy{"topP", {.top_p = 0.8F}, 300, 2.0F}, Strategy{"topPFlat", {.top_p = 0.95F}, 400, 0.3F},
                                         Strategy{"minP", {.min_p = 0.05F}, 300, 2.0F}, Strategy{"typical", {.typical_p = 0.7F}, 300, 2.0F},
                                         Strategy{"typicalCool", {.temperature = 0.5F, .typical_p = 0.4F}, 300, 2.0F},
                                         Strategy{"topNSigma", {.top_n_sigma = 1.2F}, 300, 2.0F},
                                         Strategy{"xtc", {.xtc_probability = 0.5F, .xtc_threshold = 0.1F}, 300, 2.0F},
                                         Strategy{"xtcAlways", {.top_k = 30, .xtc_probability = 1.0F, .xtc_threshold = 0.05F}, 300, 2.0F},
                                         Strategy{"xtcTooHigh", {.xtc_probability = 1.0F, .xtc_threshold = 0.6F}, 300, 2.0F},
                                         Strategy{"topPMinP", {.top_p = 0.9F, .min_p = 0.05F}, 300, 2.0F},
                                         Strategy{"smallTopP", {.top_p = 0.05F}, 400, 0.3F},
                                         Strategy{"everything",
                                                  {.temperature = 1.2F,
                                                   .top_p = 0.9F,
                                                   .min_p = 0.02F,
                                                   .top_k = 60,
                                                   .typical_p = 0.9F,
                                                   .top_n_sigma = 2.5F,
                                                   .xtc_probability = 0.3F,
                                                   .xtc_threshold = 0.1F},
                                                  300,
                                                  2.0F},
                                         Strategy{"all", {.temperature = 0.9F, .top_p = 0.9F, .min_p = 0.02F, .top_k = 50}, 300, 1.0F}),
                         [](const auto& suite) { return suite.param.name; });

// Of every way to draw: the logarithm of the defined probability, with XTC's coin as it has fallen.
TEST_P(SamplerStrategy, TellsHowLikelyTheTokenWasAmongThoseDrawnFrom) {
  const Strategy& strategy = GetParam();
  const std::vector<float> logits = random_logits(strategy.vocab, strategy.spread, 11);
  const auto defined = [&](float xtc) {
    SamplingParams params = strategy.params;
    params.xtc_probability = xtc;
    return defined_distribution(adjusted_logits(logits, params, {}), params);
  };
  const float xtc = strategy.params.xtc_probability;
  const std::vector<double> tails = defined(xtc < 1.0F ? 0.0F : 1.0F);
  const std::vector<double> heads = defined(xtc > 0.0F ? 1.0F : 0.0F);
  Sampler sampler(kernels::best_kernel_table(), static_cast<std::int32_t>(strategy.vocab), 16);
  SamplingParams params = strategy.params;
  for (std::int64_t i = 0; i < 500; ++i) {
    params.drawn_logprob = false;
    const SampledToken plain = sampler.sample(logits, {.params = params, .position = i}).value();
    EXPECT_EQ(plain.drawn_logprob, 0.0F);
    params.drawn_logprob = true;
    const SampledToken drawn = sampler.sample(logits, {.params = params, .position = i}).value();
    ASSERT_EQ(drawn.token, plain.token);  // asking changes nothing
    const auto off = [&](const std::vector<double>& expected) {
      return std::fabs(static_cast<double>(drawn.drawn_logprob) - std::log(expected[static_cast<std::size_t>(drawn.token)]));
    };
    EXPECT_LE(std::min(off(tails), off(heads)), 1e-4);
  }
  params.temperature = 0.0F;
  EXPECT_EQ(sampler.sample(logits, {.params = params}).value().drawn_logprob, 0.0F);
}

class Mirostat : public testing::TestWithParam<int> {};

TEST_P(Mirostat, DrawsFromItsDistributionAndMovesItsBound) {
  constexpr int kDraws = 5000;
  const std::vector<float> logits = random_logits(400, 2.0F, 21);
  SamplingParams params{.temperature = 0.9F, .mirostat = GetParam(), .mirostat_tau = 3.0F, .mirostat_eta = 0.2F};
  Sampler sampler(kernels::best_kernel_table(), 400, 16);
  for (const float mu : {0.5F, 4.0F, 6.0F, 20.0F}) {
    const std::vector<double> expected = mirostat_distribution(adjusted_logits(logits, params, {}), params, static_cast<double>(mu));
    std::vector<int> seen(400, 0);
    for (int i = 0; i < kDraws; ++i) {
      params.drawn_logprob = true;
      const SampledToken sampled = sampler.sample(logits, {.params = params, .position = i, .mirostat_mu = mu}).value();
      const auto token = static_cast<std::size_t>(sampled.token);
      seen[token] += 1;
      ASSERT_NEAR(static_cast<double>(sampled.drawn_logprob), std::log(expected[token]), 1e-4);
      ASSERT_NEAR(sampled.mirostat_mu, static_cast<double>(mu) - 0.2 * (-std::log2(expected[token]) - 3.0), 1e-4);
    }
    expect_drawn_from(expected, seen, kDraws);
  }
}

TEST_P(Mirostat, KeepsTheMeanSurpriseNearItsTarget) {
  const std::vector<float> logits = random_logits(3000, 2.0F, 22);
  const SamplingParams params{.mirostat = GetParam(), .mirostat_tau = 4.0F};
  Sampler sampler(kernels::best_kernel_table(), 3000, 16);
  float mu = 8.0F;
  double sum = 0.0;
  for (int i = 0; i < 3000; ++i) {
    const SampledToken sampled = sampler.sample(logits, {.params = params, .position = i, .mirostat_mu = mu}).value();
    if (i >= 1000) sum += (mu - sampled.mirostat_mu) / 0.1F + 4.0F;
    mu = sampled.mirostat_mu;
  }
  EXPECT_NEAR(sum / 2000.0, 4.0, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Versions, Mirostat, testing::Values(1, 2));

// The cases of transformers' own test of TypicalLogitsWarper.
TEST(Sampler, TypicalIsThatOfTransformers) {
  Sampler sampler(kernels::best_kernel_table(), 4, 16);
  const auto logs = [](std::vector<float> p) {
    for (float& x : p) x = std::log(x);
    return p;
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const SamplingParams params{.seed = seed, .typical_p = 0.5F};
    EXPECT_EQ(draw(sampler, logs({0.97F, 0.01F, 0.01F, 0.01F}), params, 0), 0);
    EXPECT_NE(draw(sampler, logs({0.4F, 0.2F, 0.2F, 0.2F}), params, 0), 0);
  }
}

// Allows the tokens it was made with, and whatever it is advanced by.
class Allowing final : public ConstraintState {
 public:
  explicit Allowing(std::vector<TokenId> allowed) : allowed_(std::move(allowed)) {}
  void fill_mask(std::span<std::uint32_t> mask) override {
    std::ranges::fill(mask, 0U);
    for (const TokenId id : allowed_) mask[static_cast<std::size_t>(id) / 32] |= 1U << (static_cast<std::uint32_t>(id) % 32);
  }
  void accept(TokenId) override {}
  std::unique_ptr<ConstraintState> copy() const override { return std::make_unique<Allowing>(*this); }

 private:
  std::vector<TokenId> allowed_;
};

TEST(Sampler, DrawsWhatTheConstraintAllows) {
  const std::vector<float> logits = random_logits(131, 3.0F, 31);
  Sampler sampler(kernels::best_kernel_table(), 131, 16);
  Allowing constraint({3, 64, 65, 130});
  std::vector<float> allowed_logits(131, -kInfinity);
  for (const std::size_t id : {3UL, 64UL, 65UL, 130UL}) allowed_logits[id] = logits[id];
  for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.temperature = 0.0F}, SamplingParams{.top_p = 0.7F},
                                       SamplingParams{.top_k = 2}, SamplingParams{.mirostat = 2}}) {
    for (std::int64_t position = 0; position < 100; ++position)
      EXPECT_EQ(sampler.sample(logits, {.params = params, .position = position, .constraint = &constraint}).value().token,
                sampler.sample(allowed_logits, {.params = params, .position = position}).value().token);
  }
}

TEST(Sampler, GivesNoTokenWhereNothingIsAllowed) {
  const std::vector<float> logits = random_logits(100, 1.0F, 32);
  Sampler sampler(kernels::best_kernel_table(), 100, 16);
  Allowing nothing({});
  EXPECT_FALSE(sampler.sample(logits, {.params = {}, .constraint = &nothing}));
  SamplingParams biased;
  for (TokenId id = 0; id < 100; ++id) biased.logit_bias.push_back({id, -kInfinity});
  EXPECT_FALSE(sampler.sample(logits, {.params = biased}));
}

TEST(Sampler, ACompleteTextEndsThoughItsEndIsBanned) {
  const std::vector<float> logits = random_logits(100, 1.0F, 33);
  Sampler sampler(kernels::best_kernel_table(), 100, 16);
  const std::vector<TokenId> banned{2, 7};
  Allowing end_only({2});
  EXPECT_EQ(sampler.sample(logits, {.params = {}, .banned = banned, .constraint = &end_only}).value().token, 2);
  Allowing end_or_more({2, 50});
  EXPECT_EQ(sampler.sample(logits, {.params = {}, .banned = banned, .constraint = &end_or_more}).value().token, 50);
}

TEST(Sampler, AllTiersDrawTheSameTokens) {
  const std::vector<float> logits = random_logits(5003, 2.5F, 34);
  TokenHistory history;
  const std::vector<TokenId> known{1, 2, 3, 1, 2, 3, 1, 2};
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_p = 0.9F}, SamplingParams{.temperature = 0.7F, .typical_p = 0.8F},
        SamplingParams{.top_k = 50, .repetition_penalty = 1.2F, .xtc_probability = 0.5F},
        SamplingParams{.dry_multiplier = 1.0F, .mirostat = 1}, SamplingParams{.top_n_sigma = 1.5F}, SamplingParams{.mirostat = 2}}) {
    history.start(params, known, 4, 0);
    Sampler scalar(*available_tables().front(), 5003, 16);
    for (const auto* table : available_tables()) {
      Sampler sampler(*table, 5003, 16);
      for (std::int64_t position = 0; position < 50; ++position) {
        const SamplingState state{.params = params, .position = position, .history = &history, .mirostat_mu = 6.0F};
        const SampledToken a = scalar.sample(logits, state).value();
        const SampledToken b = sampler.sample(logits, state).value();
        EXPECT_EQ(a.token, b.token) << table->name;
        EXPECT_EQ(a.mirostat_mu, b.mirostat_mu) << table->name;
      }
    }
  }
}

TEST(Sampler, KeepsExactlyTheDefinedTokensAtARealVocabulary) {
  const std::vector<float> logits = random_logits(151936, 2.5F, 5);
  Sampler sampler(kernels::best_kernel_table(), 151936, 16);
  for (SamplingParams params :
       {SamplingParams{.top_p = 0.5F}, SamplingParams{.top_p = 0.9F, .min_p = 0.01F}, SamplingParams{.top_p = 0.9F, .top_k = 1000},
        SamplingParams{.temperature = 0.7F, .min_p = 0.1F}, SamplingParams{.top_k = 7}}) {
    const std::vector<double> expected = defined_distribution(adjusted_logits(logits, params, {}), params);
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      params.seed = seed;
      EXPECT_GT(expected[static_cast<std::size_t>(draw(sampler, logits, params, 3))], 0.0);
    }
  }
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) {
  Sampler sampler(kernels::best_kernel_table(), 5, 16);
  const std::vector<float> logits{1.0F, 3.0F, 3.0F, -1.0F, 3.0F};
  const SamplingParams greedy{.temperature = 0.0F};
  EXPECT_EQ(draw(sampler, logits, greedy, 0), 1);
  const std::vector<TokenId> banned{1, 2};
  EXPECT_EQ(draw(sampler, logits, greedy, 0, banned), 4);
}

TEST(Sampler, TopKKeepsTheLowestIdsOfATie) {
  Sampler sampler(kernels::best_kernel_table(), 200, 16);
  const std::vector<float> logits(200, 0.5F);
  for (std::uint64_t seed = 0; seed < 200; ++seed) EXPECT_LT(draw(sampler, logits, {.top_k = 3, .seed = seed}, 0), 3);
}

TEST(Sampler, NeverDrawsABannedToken) {
  std::vector<float> logits = random_logits(100, 1.0F, 3);
  logits[17] = 50.0F;
  Sampler sampler(kernels::best_kernel_table(), 100, 16);
  const std::vector<TokenId> banned{17};
  std::vector<TokenLogprob> top(1);
  for (const float temperature : {1e-9F, 0.01F, 1.0F})
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const TokenId token = draw(sampler, logits, {.temperature = temperature, .seed = seed}, 0, banned);
      EXPECT_NE(token, 17);
      sampler.log_probability(logits, token, top);
      EXPECT_EQ(top[0].id, 17) << "log-probabilities are those of the model";
    }
}

TEST(Sampler, AlmostNoTemperatureIsGreedyOnEveryTier) {
  const std::vector<float> logits = random_logits(1000, 3.0F, 8);
  const auto best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  for (const auto* table : available_tables()) {
    Sampler sampler(*table, 1000, 16);
    for (std::uint64_t seed = 0; seed < 50; ++seed)
      EXPECT_EQ(draw(sampler, logits, {.temperature = 1e-30F, .seed = seed}, 1), best) << table->name;
  }
}

TEST(Sampler, ReportsTheLogSoftmaxOfTheRawLogits) {
  const std::vector<float> logits = random_logits(777, 2.0F, 9);
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  Sampler sampler(kernels::best_kernel_table(), 777, 16);
  std::vector<TokenLogprob> top(20);
  const Logprob logprob = sampler.log_probability(logits, 123, top);
  EXPECT_NEAR(logprob.value, static_cast<double>(logits[123]) - std::log(total), 1e-5);
  ASSERT_EQ(logprob.top_count, 20U);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].id, static_cast<TokenId>(order[i]));
    EXPECT_NEAR(top[i].logprob, static_cast<double>(logits[order[i]]) - std::log(total), 1e-5);
  }
}

TEST(Sampler, TopPKeepsTheLowestIdsOfATie) {
  Sampler sampler(kernels::best_kernel_table(), 700, 16);
  const std::vector<float> logits(700, 0.5F);
  std::vector<int> seen(700, 0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed)
    seen[static_cast<std::size_t>(draw(sampler, logits, {.top_p = 0.3F, .seed = seed}, 0))] += 1;
  for (std::size_t id = 211; id < 700; ++id) EXPECT_EQ(seen[id], 0) << id;
  EXPECT_GT(*std::ranges::max_element(seen.begin() + 190, seen.begin() + 211), 0);
}

TEST(Sampler, TheSmallestTopPKeepsTheBestAlone) {
  Sampler sampler(kernels::best_kernel_table(), 700, 16);
  std::vector<float> logits(700, 0.5F);
  logits[300] = logits[400] = 0.75F;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    for (const std::int32_t top_k : {0, 50, 300})
      EXPECT_EQ(draw(sampler, logits, {.top_p = std::numeric_limits<float>::min(), .top_k = top_k, .seed = seed}, 0), 300);
}

TEST(Sampler, TopLogprobsOfATieListTheLowestIdsFirst) {
  Sampler sampler(kernels::best_kernel_table(), 130, 16);
  std::vector<TokenLogprob> top(3);
  std::vector<float> logits(130, 1.0F);
  logits[100] = 2.0F;
  sampler.log_probability(logits, 0, top);
  EXPECT_EQ(top[0].id, 100);
  EXPECT_EQ(top[1].id, 0);
  EXPECT_EQ(top[2].id, 1);
}

TEST(Sampler, GivesNoTokenWhereNoLogitIsANumber) {
  Sampler sampler(kernels::best_kernel_table(), 70, 16);
  std::vector<TokenLogprob> top(5);
  for (const float value : {std::nanf(""), -kInfinity, kInfinity}) {
    const std::vector<float> logits(70, value);
    for (const SamplingParams& params :
         {SamplingParams{}, SamplingParams{.top_p = 0.5F}, SamplingParams{.top_k = 5}, SamplingParams{.min_p = 0.5F},
          SamplingParams{.typical_p = 0.5F}, SamplingParams{.top_n_sigma = 1.0F}, SamplingParams{.mirostat = 1},
          SamplingParams{.mirostat = 2}}) {
      const auto sampled = sampler.sample(logits, {.params = params});
      EXPECT_EQ(sampled.has_value(), value == kInfinity);
      EXPECT_EQ(sampled.value_or(SampledToken{}).token, 0);
      sampler.log_probability(logits, 3, top);
    }
  }
}

// The steps by their definitions, XTC aside: what is left, best first, with its logits.
std::vector<double> ordered_distribution(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<std::pair<double, std::size_t>> left;
  for (std::size_t id = 0; id < logits.size(); ++id) left.emplace_back(static_cast<double>(logits[id]), id);
  std::ranges::stable_sort(left, [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto probabilities = [&left] {
    std::vector<double> out;
    double total = 0.0;
    for (const auto& [logit, id] : left) total += out.emplace_back(std::exp(logit - left.front().first));
    for (double& p : out) p /= total;
    return out;
  };
  for (const SamplerStep step : params.steps) {
    const std::vector<double> p = probabilities();
    std::size_t keep = left.size();
    if (step == SamplerStep::kTopK && params.top_k > 0) keep = std::min(keep, static_cast<std::size_t>(params.top_k));
    if (step == SamplerStep::kTopP) {
      double sum = 0.0;
      for (keep = 0; keep < left.size() && sum < static_cast<double>(params.top_p);) sum += p[keep++];
    }
    if (step == SamplerStep::kMinP)
      for (keep = 1; keep < left.size() && p[keep] >= static_cast<double>(params.min_p) * p[0];) ++keep;
    if (step == SamplerStep::kTopNSigma && params.top_n_sigma > 0.0F) {
      double mean = 0.0, squares = 0.0;
      for (const auto& [logit, id] : left) mean += logit / static_cast<double>(left.size());
      for (const auto& [logit, id] : left) squares += (logit - mean) * (logit - mean) / static_cast<double>(left.size());
      const double least = left.front().first - static_cast<double>(params.top_n_sigma) * std::sqrt(squares);
      for (keep = 1; keep < left.size() && left[keep].first >= least;) ++keep;
    }
    left.resize(std::max<std::size_t>(keep, 1));
    if (step == SamplerStep::kTemperature)
      for (auto& [logit, id] : left) logit /= static_cast<double>(params.temperature);
  }
  std::vector<double> out(logits.size(), 0.0);
  const std::vector<double> p = probabilities();
  for (std::size_t i = 0; i < left.size(); ++i) out[left[i].second] = p[i];
  return out;
}

TEST(Sampler, DrawsFromWhatStepsInTheirOrderLeave) {
  using enum SamplerStep;
  constexpr int kDraws = 20000;
  const std::vector<std::vector<SamplerStep>> orders = {
      {kTopK, kTopP, kMinP, kTemperature}, {kTemperature, kTopP, kTopK}, {kTopP, kTemperature, kMinP}, {kTemperature}, {kMinP},
      {kTopNSigma, kTemperature},          {kTemperature, kTopNSigma},   {kTopP, kTopNSigma, kTopK}};
  const std::vector<float> logits = random_logits(300, 2.0F, 5);
  Sampler sampler(kernels::best_kernel_table(), 300, 16);
  for (const std::vector<SamplerStep>& steps : orders) {
    SamplingParams params{.temperature = 1.6F, .top_p = 0.8F, .min_p = 0.05F, .top_k = 25, .top_n_sigma = 1.5F, .steps = steps};
    if (std::ranges::count(steps, kTemperature) == 0) params.temperature = 1.0F;
    std::vector<int> seen(300, 0);
    for (int i = 0; i < kDraws; ++i) {
      params.seed = static_cast<std::uint64_t>(i % 10);
      seen[static_cast<std::size_t>(draw(sampler, logits, params, i / 10))] += 1;
    }
    const std::vector<double> expected = ordered_distribution(logits, params);
    expect_drawn_from(expected, seen, kDraws);
    params.drawn_logprob = true;
    const SampledToken drawn = sampler.sample(logits, {.params = params}).value();
    EXPECT_NEAR(static_cast<double>(drawn.drawn_logprob), std::log(expected[static_cast<std::size_t>(drawn.token)]), 1e-4);
  }
}

TEST(Sampler, StepsInTheUsualOrderLeaveTheUsualTokens) {
  using enum SamplerStep;
  const std::vector<float> logits = random_logits(400, 2.0F, 6);
  Sampler sampler(kernels::best_kernel_table(), 400, 16);
  SamplingParams usual{.temperature = 0.7F, .top_p = 0.9F, .min_p = 0.02F, .top_k = 50, .typical_p = 0.8F, .xtc_probability = 0.5F};
  SamplingParams ordered = usual;
  ordered.steps = {kTemperature, kTopK, kTypicalP, kTopP, kMinP, kXtc};
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    usual.seed = ordered.seed = seed;
    EXPECT_EQ(draw(sampler, logits, usual, 3), draw(sampler, logits, ordered, 3)) << seed;
  }
}

}  // namespace
}  // namespace braid::model::test
