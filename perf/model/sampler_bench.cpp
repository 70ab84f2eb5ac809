// Time to sample one row of logits at the vocabulary of Qwen2.5, for each strategy.
#include <kernels/select.h>
#include <model/sampler.h>

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

namespace {

using namespace braid;

constexpr std::int32_t kVocab = 151936;

void sample(benchmark::State& state, SamplingParams params) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 2.5F);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = normal(random);
  std::vector<TokenLogprob> top(kMaxTopLogprobs);
  model::Sampler sampler(kernels::best_kernel_table(), kVocab);
  std::int64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(logits, params, position++, {}, top));
}

BENCHMARK_CAPTURE(sample, greedy, {.temperature = 0.0F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, temperature, {.temperature = 0.8F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_k, {.temperature = 0.8F, .top_k = 40})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_p, {.temperature = 0.8F, .top_p = 0.95F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, min_p, {.temperature = 0.8F, .min_p = 0.05F})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_k_top_p, {.temperature = 0.8F, .top_p = 0.95F, .top_k = 40})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(sample, top_k_top_p_20_logprobs, {.temperature = 0.8F, .top_p = 0.95F, .top_k = 40, .top_logprobs = kMaxTopLogprobs})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
