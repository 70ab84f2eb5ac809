#include "net/metrics/other_names.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace braid::net {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

constexpr double kMilliseconds = 1e-3;

double used_share(const EngineStats& engine) {
  return engine.blocks_total > 0 ? 1.0 - static_cast<double>(engine.blocks_free) / engine.blocks_total : 0.0;
}

double rate(std::uint64_t tokens, double seconds) { return seconds > 0.0 ? static_cast<double>(tokens) / seconds : 0.0; }

class VllmFamilies {
 public:
  VllmFamilies(FamilyList& families, const std::string& model) : families_(families), model_(model) {}

  void gauge(std::string_view name, std::string_view help, double value) {
    ClientMetric metric;
    metric.gauge.value = value;
    add(name, help, MetricType::Gauge, std::move(metric));
  }

  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    ClientMetric metric;
    metric.counter.value = static_cast<double>(value);
    add(name, help, MetricType::Counter, std::move(metric));
  }

  // Of milliseconds, in seconds.
  void histogram(std::string_view name, std::string_view help, const Histogram& of_ms) {
    ClientMetric metric;
    std::uint64_t cumulative = 0;
    for (std::size_t i = 0; i < of_ms.counts().size(); ++i) {
      cumulative += of_ms.counts()[i];
      const bool last = i >= of_ms.bounds().size();
      metric.histogram.bucket.push_back({cumulative, last ? std::numeric_limits<double>::infinity() : of_ms.bounds()[i] * kMilliseconds});
    }
    metric.histogram.sample_count = cumulative;
    metric.histogram.sample_sum = of_ms.sum() * kMilliseconds;
    add(name, help, MetricType::Histogram, std::move(metric));
  }

 private:
  void add(std::string_view name, std::string_view help, MetricType type, ClientMetric metric) {
    metric.label = {{"model_name", model_}};
    families_.add({"vllm:" + std::string(name), std::string(help), type, {std::move(metric)}});
  }

  FamilyList& families_;
  const std::string& model_;
};

}  // namespace

void add_vllm_names(FamilyList& families, const Counters& counters, const EngineStats& engine, const std::string& model) {
  VllmFamilies vllm(families, model);
  vllm.gauge("num_requests_running", "Sequences in the batch.", static_cast<double>(engine.prefilling + engine.decoding));
  vllm.gauge("num_requests_waiting", "Requests in the queue.", static_cast<double>(engine.waiting));
  vllm.gauge("kv_cache_usage_perc", "Share of the KV pool that is held, 1 is all.", used_share(engine));
  vllm.counter("num_preemptions_total", "Sequences that gave their KV memory up.", engine.preemptions);
  vllm.counter("prompt_tokens_total", "Prompt tokens computed.", engine.prompt_tokens);
  vllm.counter("generation_tokens_total", "Tokens generated.", engine.generated_tokens);
  vllm.counter("request_success_total", "Sequences that have ended.", engine.finished);
  vllm.histogram("time_to_first_token_seconds", "From a request's arrival to its first token.", counters.first_token_ms);
  vllm.histogram("inter_token_latency_seconds", "Between two tokens of a choice.", counters.inter_token_ms);
  vllm.histogram("e2e_request_latency_seconds", "From a request's arrival to the end of its answer.", counters.request_ms);
}

void add_llamacpp_names(FamilyList& families, const EngineStats& engine) {
  families.counter("llamacpp:prompt_tokens_total", "Prompt tokens computed.", engine.prompt_tokens);
  families.counter("llamacpp:prompt_seconds_total", "Time of steps spent on prompts.", engine.prefill_seconds);
  families.counter("llamacpp:tokens_predicted_total", "Tokens generated.", engine.generated_tokens);
  families.counter("llamacpp:tokens_predicted_seconds_total", "Time of steps spent on answers.", engine.decode_seconds);
  families.counter("llamacpp:n_decode_total", "Steps.", engine.steps);
  families.gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens a second, on average.",
                 rate(engine.prompt_tokens, engine.prefill_seconds));
  families.gauge("llamacpp:predicted_tokens_seconds", "Generated tokens a second, on average.",
                 rate(engine.generated_tokens, engine.decode_seconds));
  families.gauge("llamacpp:kv_cache_usage_ratio", "Share of the KV pool that is held, 1 is all.", used_share(engine));
  families.gauge("llamacpp:requests_processing", "Sequences in the batch.", engine.prefilling + engine.decoding);
  families.gauge("llamacpp:requests_deferred", "Requests in the queue.", engine.waiting);
}

}  // namespace braid::net
