#include <model/forward_harness.h>
#include <model/sampler.h>

#include <cmath>
#include <limits>
#include <random>

namespace braid::model::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The strategy by its definition: sorted in full, in double. Probabilities of every id.
std::vector<double> defined_distribution(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<double> weight(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    weight[i] = std::exp((static_cast<double>(logits[i]) - static_cast<double>(logits[order[0]])) / static_cast<double>(params.temperature));
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < order.size()) order.resize(static_cast<std::size_t>(params.top_k));
  double mass = 0.0;
  for (const std::size_t i : order) mass += weight[i];
  double kept = 0.0;
  std::size_t count = 0;
  while (count < order.size() && kept < static_cast<double>(params.top_p) * mass) kept += weight[order[count++]];
  order.resize(count);
  std::erase_if(order, [&](std::size_t i) { return weight[i] < static_cast<double>(params.min_p); });
  double total = 0.0;
  for (const std::size_t i : order) total += weight[i];
  std::vector<double> probability(logits.size(), 0.0);
  for (const std::size_t i : order) probability[i] = weight[i] / total;
  return probability;
}

std::vector<float> random_logits(std::size_t count, float spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

struct Strategy {
  const char* name;
  SamplingParams params;
  std::size_t vocab;
  float spread;
};

class SamplerStrategy : public testing::TestWithParam<Strategy> {};

// Pearson's chi-squared over 10^5 draws; cells that expect fewer than 10 are pooled. The bound is the mean plus five standard
// deviations of the distribution, and the seeds are fixed.
TEST_P(SamplerStrategy, DrawsFromItsDistribution) {
  constexpr int kDraws = 100000;
  const Strategy& strategy = GetParam();
  const std::vector<float> logits = random_logits(strategy.vocab, strategy.spread, 11);
  const std::vector<double> expected = defined_distribution(logits, strategy.params);
  Sampler sampler(kernels::best_kernel_table(), static_cast<std::int32_t>(strategy.vocab));
  std::vector<int> seen(strategy.vocab, 0);
  SamplingParams params = strategy.params;
  for (int i = 0; i < kDraws; ++i) {
    params.seed = 42 + static_cast<std::uint64_t>(i % 10);
    params.choice = static_cast<std::uint32_t>(i / 10 % 4);
    seen[static_cast<std::size_t>(sampler.sample(logits, params, i / 40, {}, {}).token)] += 1;
  }
  double chi = 0.0, pooled_expected = 0.0;
  int pooled_seen = 0, cells = 0;
  const auto add = [&](double count, double expectation) {
    chi += (count - expectation) * (count - expectation) / expectation;
    cells += 1;
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (expected[i] == 0.0) {
      EXPECT_EQ(seen[i], 0) << "token " << i << " was cut and drawn";
      continue;
    }
    if (expected[i] * kDraws >= 10.0) {
      add(seen[i], expected[i] * kDraws);
    } else {
      pooled_expected += expected[i] * kDraws;
      pooled_seen += seen[i];
    }
  }
  if (pooled_expected >= 1.0) add(pooled_seen, pooled_expected);
  const double freedom = std::max(1, cells - 1);
  EXPECT_LE(chi, freedom + 5.0 * std::sqrt(2.0 * freedom)) << cells << " cells";
}

INSTANTIATE_TEST_SUITE_P(Strategies, SamplerStrategy,
                         testing::Values(Strategy{"plain", {}, 300, 2.0F}, Strategy{"manyTokens", {}, 1500, 3.0F},
                                         Strategy{"cool", {.temperature = 0.6F}, 300, 2.0F},
                                         Strategy{"hot", {.temperature = 1.7F}, 300, 2.0F},
                                         Strategy{"topK", {.top_k = 20}, 300, 1.0F},
                                         Strategy{"topP", {.top_p = 0.8F}, 300, 2.0F},
                                         Strategy{"topPFlat", {.top_p = 0.95F}, 400, 0.3F},
                                         Strategy{"minP", {.min_p = 0.05F}, 300, 2.0F},
                                         Strategy{"all", {.temperature = 0.9F, .top_p = 0.9F, .min_p = 0.02F, .top_k = 50}, 300, 1.0F}),
                         [](const auto& suite) { return suite.param.name; });

TEST(Sampler, KeepsExactlyTheDefinedTokensAtARealVocabulary) {
  const std::vector<float> logits = random_logits(151936, 2.5F, 5);
  Sampler sampler(kernels::best_kernel_table(), 151936);
  for (SamplingParams params : {SamplingParams{.top_p = 0.5F}, SamplingParams{.top_p = 0.9F, .top_k = 1000},
                                SamplingParams{.temperature = 0.7F, .min_p = 0.1F}, SamplingParams{.top_k = 7}}) {
    const std::vector<double> expected = defined_distribution(logits, params);
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      params.seed = seed;
      EXPECT_GT(expected[static_cast<std::size_t>(sampler.sample(logits, params, 3, {}, {}).token)], 0.0);
    }
  }
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) {
  Sampler sampler(kernels::best_kernel_table(), 5);
  const std::vector<float> logits{1.0F, 3.0F, 3.0F, -1.0F, 3.0F};
  const SamplingParams greedy{.temperature = 0.0F};
  EXPECT_EQ(sampler.sample(logits, greedy, 0, {}, {}).token, 1);
  const std::vector<TokenId> banned{1, 2};
  EXPECT_EQ(sampler.sample(logits, greedy, 0, banned, {}).token, 4);
}

TEST(Sampler, TopKKeepsTheLowestIdsOfATie) {
  Sampler sampler(kernels::best_kernel_table(), 200);
  const std::vector<float> logits(200, 0.5F);
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    EXPECT_LT(sampler.sample(logits, {.top_k = 3, .seed = seed}, 0, {}, {}).token, 3);
}

TEST(Sampler, NeverDrawsABannedToken) {
  std::vector<float> logits = random_logits(100, 1.0F, 3);
  logits[17] = 50.0F;
  Sampler sampler(kernels::best_kernel_table(), 100);
  const std::vector<TokenId> banned{17};
  std::vector<TokenLogprob> top(1);
  for (const float temperature : {1e-9F, 0.01F, 1.0F})
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const SampledToken sampled = sampler.sample(logits, {.temperature = temperature, .seed = seed, .top_logprobs = 1}, 0, banned, top);
      EXPECT_NE(sampled.token, 17);
      EXPECT_EQ(top[0].id, 17) << "log-probabilities are those of the model";
    }
}

TEST(Sampler, AlmostNoTemperatureIsGreedyOnEveryTier) {
  const std::vector<float> logits = random_logits(1000, 3.0F, 8);
  const auto best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  for (const auto* table : available_tables()) {
    Sampler sampler(*table, 1000);
    for (std::uint64_t seed = 0; seed < 50; ++seed)
      EXPECT_EQ(sampler.sample(logits, {.temperature = 1e-30F, .seed = seed}, 1, {}, {}).token, best) << table->name;
  }
}

TEST(Sampler, ReportsTheLogSoftmaxOfTheRawLogits) {
  const std::vector<float> logits = random_logits(777, 2.0F, 9);
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  Sampler sampler(kernels::best_kernel_table(), 777);
  std::vector<TokenLogprob> top(20);
  const SampledToken sampled = sampler.sample(logits, {.temperature = 0.4F, .top_k = 5, .top_logprobs = 20}, 4, {}, top);
  EXPECT_NEAR(sampled.logprob, static_cast<double>(logits[static_cast<std::size_t>(sampled.token)]) - std::log(total), 1e-5);
  ASSERT_EQ(sampled.top_count, 20U);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(top[i].id, static_cast<TokenId>(order[i]));
    EXPECT_NEAR(top[i].logprob, static_cast<double>(logits[order[i]]) - std::log(total), 1e-5);
  }
}

TEST(Sampler, TopLogprobsOfATieListTheLowestIdsFirst) {
  Sampler sampler(kernels::best_kernel_table(), 130);
  std::vector<TokenLogprob> top(3);
  std::vector<float> logits(130, 1.0F);
  logits[100] = 2.0F;
  sampler.sample(logits, {.top_logprobs = 3}, 0, {}, top);
  EXPECT_EQ(top[0].id, 100);
  EXPECT_EQ(top[1].id, 0);
  EXPECT_EQ(top[2].id, 1);
}

TEST(Sampler, SurvivesLogitsThatAreNotNumbers) {
  Sampler sampler(kernels::best_kernel_table(), 70);
  std::vector<TokenLogprob> top(5);
  for (const float value : {std::nanf(""), -kInfinity, kInfinity}) {
    const std::vector<float> logits(70, value);
    for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.top_p = 0.5F}, SamplingParams{.top_k = 5}, SamplingParams{.min_p = 0.5F}}) {
      SamplingParams reported = params;
      reported.top_logprobs = 5;
      const TokenId token = sampler.sample(logits, reported, 0, {}, top).token;
      EXPECT_TRUE(token >= 0 && token < 70);
    }
  }
}

}  // namespace
}  // namespace braid::model::test
