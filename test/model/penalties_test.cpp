#include "model/sampling/penalties.h"

#include "model/sampling/dry.h"
#include "model/sampling/token_history.h"
#include "model/sampling_reference.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <span>

namespace braid::model::test {
namespace {

constexpr std::size_t kVocab = 24;

std::vector<float> adjust(std::vector<float> logits, const SamplingParams& params, const Known& known) {
  // The history begins with a part and grows by the rest, as in a running sequence.
  const std::size_t begin = known.tokens.size() - known.generated / 2;
  TokenHistory history;
  history.start(params, std::span(known.tokens).first(begin), static_cast<std::int32_t>(known.generated - known.generated / 2), 0);
  for (const TokenId token : std::span(known.tokens).subspan(begin)) history.append(token);
  add_bias(params.logit_bias, logits);
  apply_penalties(params, history.counts(), logits);
  DryPenalty dry(64);
  dry.apply(params, history.tokens(), logits);
  return logits;
}

// Few different tokens, so that much repeats.
Known random_text(std::mt19937& random) {
  Known known;
  known.tokens.resize(random() % 60);
  for (TokenId& token : known.tokens) token = static_cast<TokenId>(random() % (2 + random() % 6));
  known.generated = known.tokens.empty() ? 0 : random() % (known.tokens.size() + 1);
  return known;
}

SamplingParams random_penalties(std::mt19937& random) {
  SamplingParams params;
  for (TokenId token = 0; token < static_cast<TokenId>(random() % 3); ++token)
    params.logit_bias.push_back({token * 3, static_cast<float>(random() % 200) / 100.0F - 1.0F});
  if (random() % 2 == 0) params.repetition_penalty = 0.5F + static_cast<float>(random() % 100) / 50.0F;
  if (random() % 2 == 0) params.presence_penalty = static_cast<float>(random() % 100) / 25.0F - 2.0F;
  if (random() % 2 == 0) params.frequency_penalty = static_cast<float>(random() % 100) / 25.0F - 2.0F;
  if (random() % 2 == 0) params.penalty_last_n = static_cast<std::int32_t>(random() % 20);
  if (random() % 2 == 0) params.dry_multiplier = 0.8F;
  params.dry_base = 1.0F + static_cast<float>(random() % 10) / 10.0F;
  params.dry_allowed_length = static_cast<std::int32_t>(random() % 4);
  if (random() % 2 == 0) params.dry_penalty_last_n = static_cast<std::int32_t>(random() % 30);
  if (random() % 2 == 0) params.dry_sequence_breakers = {{5}, {1, 4}, {1, 4, 2}};
  return params;
}

TEST(Penalties, AreThoseOfTheirDefinitions) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal(0.0F, 2.0F);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<float> logits(kVocab);
    for (float& logit : logits) logit = trial % 5 == 0 ? 0.5F : normal(random);
    const Known known = random_text(random);
    const SamplingParams params = random_penalties(random);
    const std::vector<double> expected = adjusted_logits(logits, params, known);
    const std::vector<float> found = adjust(logits, params, known);
    for (std::size_t id = 0; id < kVocab; ++id)
      ASSERT_NEAR(found[id], expected[id], 1e-5 + 1e-6 * std::abs(expected[id])) << "trial " << trial << ", token " << id;
  }
}

// The case of transformers' own test of RepetitionPenaltyLogitsProcessor.
TEST(Penalties, RepetitionIsThatOfTransformers) {
  std::vector<float> logits(20, 0.05F);
  logits[0] = -0.05F;
  logits[5] = 0.2F;
  const std::vector<float> found = adjust(logits, {.repetition_penalty = 2.0F}, {.tokens = {0, 1, 5}});
  EXPECT_FLOAT_EQ(found[0], -0.1F);
  EXPECT_FLOAT_EQ(found[1], 0.025F);
  EXPECT_FLOAT_EQ(found[5], 0.1F);
  EXPECT_FLOAT_EQ(found[2], 0.05F);
}

TEST(Penalties, PresenceAndFrequencyLookAtTheAnswerOnly) {
  const SamplingParams params{.presence_penalty = 0.5F, .frequency_penalty = 0.25F};
  const std::vector<float> found = adjust(std::vector<float>(4, 0.0F), params, {.tokens = {1, 1, 2, 3, 3}, .generated = 3});
  EXPECT_EQ(found, (std::vector<float>{0.0F, 0.0F, -0.75F, -1.0F}));
}

TEST(Penalties, DryLowersWhatWouldProlongARepetition) {
  const SamplingParams params{.dry_multiplier = 1.0F, .dry_base = 1.5F, .dry_allowed_length = 2};
  EXPECT_EQ(adjust(std::vector<float>(4, 0.0F), params, {.tokens = {0, 1, 2, 0, 1}}), (std::vector<float>{0.0F, 0.0F, -1.0F, 0.0F}));
  EXPECT_EQ(adjust(std::vector<float>(4, 0.0F), params, {.tokens = {3, 0, 1, 2, 3, 0, 1}}), (std::vector<float>{0.0F, 0.0F, -1.5F, 0.0F}));
  SamplingParams broken = params;
  broken.dry_sequence_breakers = {{0}};
  EXPECT_EQ(adjust(std::vector<float>(4, 0.0F), broken, {.tokens = {3, 0, 1, 2, 3, 0, 1}}), std::vector<float>(4, 0.0F));
}

TEST(Penalties, DryStaysFiniteOverLongRepetitions) {
  const SamplingParams params{.dry_multiplier = 1.0F, .dry_base = 4.0F, .dry_allowed_length = 1};
  const std::vector<float> found = adjust(std::vector<float>(4, 0.0F), params, {.tokens = std::vector<TokenId>(5000, 1)});
  EXPECT_LT(found[1], -1e37F);
  EXPECT_TRUE(std::isfinite(found[1]));
}

TEST(TokenHistory, IsTheSameHoweverItGrew) {
  std::mt19937 random(3);
  for (const std::int32_t window : {-1, 0, 1, 7, 100}) {
    const SamplingParams params{.penalty_last_n = window};
    std::vector<TokenId> tokens(40);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 9);
    TokenHistory whole;
    whole.start(params, tokens, 30, 0);
    TokenHistory grown;
    grown.start(params, std::span(tokens).first(10), 0, 30);
    for (const TokenId token : std::span(tokens).subspan(10)) grown.append(token);
    EXPECT_TRUE(std::ranges::equal(whole.tokens(), grown.tokens()));
    ASSERT_EQ(whole.counts().size(), grown.counts().size());
    for (std::size_t i = 0; i < whole.counts().size(); ++i) {
      EXPECT_EQ(whole.counts()[i].token, grown.counts()[i].token);
      EXPECT_EQ(whole.counts()[i].in_window, grown.counts()[i].in_window) << window;
      EXPECT_EQ(whole.counts()[i].in_answer, grown.counts()[i].in_answer);
    }
  }
}

}  // namespace
}  // namespace braid::model::test
