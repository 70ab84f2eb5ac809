#include "net/metrics/other_names.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

using prometheus::MetricType;

constexpr double kMilliseconds = 1e-3;

double used_share(const EngineStats& engine) {
  return engine.blocks_total > 0 ? 1.0 - static_cast<double>(engine.blocks_free) / engine.blocks_total : 0.0;
}

double rate(std::uint64_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

std::uint64_t sum_of(const DraftStats::Counts& counts) {
  std::uint64_t sum = 0;
  for (const auto& places : counts) sum = std::accumulate(places.begin(), places.end(), sum);
  return sum;
}

// Families under names with one prefix.
class Named {
 public:
  Named(FamilyList& families, std::string prefix) : families_(families), prefix_(std::move(prefix)) {}

  void gauge(std::string_view name, std::string_view help, auto value) { families_.gauge(prefix_ + std::string(name), help, value); }
  void counter(std::string_view name, std::string_view help, auto value) { families_.counter(prefix_ + std::string(name), help, value); }

  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    families_.histogram(prefix_ + std::string(name), help, histogram.bounds(), histogram.counts(), histogram.sum());
  }

  void tokens(std::string_view name, std::string_view help, const TokenHistogram& histogram) {
    families_.histogram(prefix_ + std::string(name), help, TokenHistogram::kBounds, histogram.counts, static_cast<double>(histogram.sum));
  }

  // Of milliseconds, in seconds.
  void seconds(std::string_view name, std::string_view help, const Histogram& of_ms) {
    std::vector<double> bounds(of_ms.bounds().begin(), of_ms.bounds().end());
    for (double& bound : bounds) bound *= kMilliseconds;
    families_.histogram(prefix_ + std::string(name), help, bounds, of_ms.counts(), of_ms.sum() * kMilliseconds);
  }

  // What is always 1 and tells by its labels.
  void told(std::string_view name, std::string_view help, std::vector<prometheus::ClientMetric::Label> labels) {
    prometheus::ClientMetric metric;
    metric.gauge.value = 1.0;
    metric.label = std::move(labels);
    families_.add({prefix_ + std::string(name), std::string(help), MetricType::Gauge, {std::move(metric)}});
  }

  void labelled(MetricType type, std::string_view name, std::string_view help, std::string_view label,
                std::span<const FamilyList::Labelled> values) {
    families_.labelled(type, prefix_ + std::string(name), help, label, values);
  }

 private:
  FamilyList& families_;
  std::string prefix_;
};

// Boards of several years: what one version calls otherwise stands there under both names.
void add_vllm_engine(Named& vllm, const EngineStats& engine) {
  vllm.gauge("num_requests_running", "Sequences in the batch.", engine.prefilling + engine.decoding);
  vllm.gauge("num_requests_waiting", "Requests in the queue.", engine.waiting);
  vllm.gauge("num_requests_swapped", "Requests in the queue that have run before.", engine.preempted);
  for (const char* name : {"kv_cache_usage_perc", "gpu_cache_usage_perc"})
    vllm.gauge(name, "Share of the KV pool that is held, 1 is all.", used_share(engine));
  vllm.tokens("iteration_tokens_total", "Tokens of prompts and answers that a step computed.", engine.step_tokens);
  vllm.told("cache_config_info", "What the KV pool is made of.",
            {{"block_size", std::to_string(engine.block_tokens)},
             {"enable_prefix_caching", engine.caches_prefixes ? "True" : "False"},
             {"num_gpu_blocks", std::to_string(engine.blocks_total)}});
  vllm.counter("num_preemptions_total", "Sequences that gave their KV memory up.", engine.preemptions);
  vllm.counter("prompt_tokens_total", "Prompt tokens computed.", engine.prompt_tokens);
  vllm.counter("prompt_tokens_cached_total", "Prompt tokens found in the prefix cache.", engine.cache_hit_tokens);
  vllm.counter("generation_tokens_total", "Tokens generated.", engine.generated_tokens);
  vllm.counter("spec_decode_num_draft_tokens_total", "Tokens guessed.", sum_of(engine.drafts.drafted));
  vllm.counter("spec_decode_num_accepted_tokens_total", "Of these, those that were right.", sum_of(engine.drafts.accepted));
  for (const std::string version : {"", "gpu_"}) {
    vllm.counter(version + "prefix_cache_queries_total", "Prompt tokens looked for in the prefix cache.",
                 engine.cache_hit_tokens + engine.cache_miss_tokens);
    vllm.counter(version + "prefix_cache_hits_total", "Prompt tokens found there.", engine.cache_hit_tokens);
  }
}

void add_vllm_requests(Named& vllm, const Counters& counters) {
  const std::array ended = {FamilyList::Labelled{"stop", static_cast<double>(counters.ended_whole)},
                            FamilyList::Labelled{"length", static_cast<double>(counters.ended_cut)},
                            FamilyList::Labelled{"abort", static_cast<double>(counters.ended_early)}};
  vllm.labelled(MetricType::Counter, "request_success_total", "Answers that have ended, by how.", "finished_reason", ended);
  vllm.seconds("time_to_first_token_seconds", "From a request's arrival to its first token.", counters.first_token_ms);
  for (const char* name : {"inter_token_latency_seconds", "time_per_output_token_seconds"})
    vllm.seconds(name, "Between two tokens of a choice.", counters.inter_token_ms);
  vllm.seconds("request_time_per_output_token_seconds", "The mean of them in an answer.", counters.mean_token_ms);
  vllm.seconds("e2e_request_latency_seconds", "From a request's arrival to the end of its answer.", counters.answer_ms);
  vllm.seconds("request_queue_time_seconds", "From a generation's arrival to its place in the batch.", counters.queue_ms);
  vllm.seconds("request_prefill_time_seconds", "From there to the first token.", counters.prefill_ms);
  vllm.seconds("request_decode_time_seconds", "From there to the last one.", counters.decode_ms);
  vllm.seconds("request_inference_time_seconds", "The last two together.", counters.inference_ms);
  vllm.histogram("request_prompt_tokens", "Prompt tokens of a request.", counters.prompt_tokens);
  vllm.histogram("request_generation_tokens", "Tokens generated for a request.", counters.generated_tokens);
  for (const char* name : {"request_max_num_generation_tokens", "request_params_max_tokens"})
    vllm.histogram(name, "Tokens that a choice might have.", counters.token_limits);
  vllm.histogram("request_params_n", "Choices of a request.", counters.choices);
}

}  // namespace

void add_vllm_names(FamilyList& families, const Counters& counters, const ModelDirectory& models) {
  for (const ServedModel* model : models.all()) {
    FamilyList own;
    Named vllm(own, "vllm:");
    add_vllm_engine(vllm, model->engine->stats());
    if (model == models.all().front()) add_vllm_requests(vllm, counters);
    families.add_labelled(std::move(own), "model_name", model->id);
  }
}

void add_llamacpp_names(FamilyList& families, const Counters& counters, const EngineStats& engine) {
  Named llama(families, "llamacpp:");
  llama.counter("prompt_tokens_total", "Prompt tokens computed.", engine.prompt_tokens);
  llama.counter("prompt_seconds_total", "Time of steps spent on prompts.", engine.prefill_seconds);
  llama.counter("tokens_predicted_total", "Tokens generated.", engine.generated_tokens);
  llama.counter("tokens_predicted_seconds_total", "Time of steps spent on answers.", engine.decode_seconds);
  llama.counter("n_decode_total", "Steps.", engine.steps);
  llama.counter("n_tokens_max", "Tokens of the longest prompt with its answer.", counters.longest_tokens);
  llama.gauge("n_busy_slots_per_decode", "Tokens generated in a step, on average.",
              rate(engine.generated_tokens, static_cast<double>(engine.steps)));
  llama.gauge("prompt_tokens_seconds", "Prompt tokens a second, on average.", rate(engine.prompt_tokens, engine.prefill_seconds));
  llama.gauge("predicted_tokens_seconds", "Generated tokens a second, on average.", rate(engine.generated_tokens, engine.decode_seconds));
  llama.gauge("kv_cache_usage_ratio", "Share of the KV pool that is held, 1 is all.", used_share(engine));
  llama.gauge("requests_processing", "Sequences in the batch.", engine.prefilling + engine.decoding);
  llama.gauge("requests_deferred", "Requests in the queue.", engine.waiting);
}

}  // namespace braid::net
