// Time to sample one row of logits at the vocabulary of Qwen2.5, for each strategy.
#include "kernels/select.h"
#include "model/sampling/sampler.h"
#include "step/step.h"

#include <benchmark/benchmark.h>
#include <random>
#include <vector>

namespace {

using namespace braid;

constexpr std::int32_t kVocab = 151936;
constexpr std::int32_t kContext = 4096;
constexpr std::int32_t kAnswer = 512;  // of the context

void sample(benchmark::State& state, SamplingParams params) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 2.5F);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = normal(random);
  std::vector<TokenLogprob> top(kMaxTopLogprobs);
  std::vector<TokenId> known(kContext);
  for (TokenId& token : known) token = static_cast<TokenId>(random() % 1500);  // about as many different ones as such a text has
  model::Sampler sampler(kernels::best_kernel_table(), kVocab, kContext);
  model::TokenHistory history;
  history.start(params, known, kAnswer, 0);
  model::SamplingState sampled{.params = params, .history = step::looks_back(params) ? &history : nullptr};
  for (auto _ : state) {
    sampled.position += 1;
    auto token = sampler.sample(logits, sampled).value().token;
    if (params.top_logprobs >= 0) benchmark::DoNotOptimize(sampler.log_probability(logits, token, top));
    benchmark::DoNotOptimize(token);
  }
}

BENCHMARK_CAPTURE(sample, greedy, {.temperature = 0.0F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, temperature, {.temperature = 0.8F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_k, {.temperature = 0.8F, .top_k = 40})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_p, {.temperature = 0.8F, .top_p = 0.95F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, min_p, {.temperature = 0.8F, .min_p = 0.05F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_k_top_p, {.temperature = 0.8F, .top_p = 0.95F, .top_k = 40})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(
    sample, full,
    {.temperature = 0.8F, .top_p = 0.95F, .top_k = 40, .repetition_penalty = 1.1F, .presence_penalty = 0.3F, .frequency_penalty = 0.2F})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, full_20_logprobs,
                  {.temperature = 0.8F,
                   .top_p = 0.95F,
                   .top_k = 40,
                   .repetition_penalty = 1.1F,
                   .presence_penalty = 0.3F,
                   .frequency_penalty = 0.2F,
                   .top_logprobs = kMaxTopLogprobs})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, full_without_top_k,
                  {.temperature = 0.8F, .top_p = 0.95F, .repetition_penalty = 1.1F, .presence_penalty = 0.3F, .frequency_penalty = 0.2F})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_n_sigma, {.temperature = 0.8F, .top_n_sigma = 1.0F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, typical_p, {.temperature = 0.8F, .typical_p = 0.9F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, xtc, {.temperature = 0.8F, .min_p = 0.02F, .xtc_probability = 1.0F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, dry, {.temperature = 0.8F, .dry_multiplier = 0.8F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, mirostat_1, {.temperature = 0.8F, .mirostat = 1})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, mirostat_2, {.temperature = 0.8F, .mirostat = 2})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_k_top_p_20_logprobs, {.temperature = 0.8F, .top_p = 0.95F, .top_k = 40, .top_logprobs = kMaxTopLogprobs})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
