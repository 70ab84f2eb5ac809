#include <net/metrics/exposition.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric value_metric(MetricType type, double value) {
  ClientMetric metric;
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

class Families {
 public:
  void add(MetricType type, std::string name, std::string help, double value) {
    families_.push_back({std::move(name), std::move(help), type, {value_metric(type, value)}});
  }

  void add(MetricFamily family) { families_.push_back(std::move(family)); }

  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  std::vector<MetricFamily> families_;
};

MetricFamily requests_family(const Counters& counters) {
  MetricFamily family{"requests_total", "Requests answered, by route and status.", MetricType::Counter, {}};
  for (const auto& [key, count] : counters.requests) {
    ClientMetric metric = value_metric(MetricType::Counter, static_cast<double>(count));
    metric.label = {{"route", std::string(path_of(key.first))}, {"status", std::to_string(key.second)}};
    family.metric.push_back(std::move(metric));
  }
  ClientMetric unrouted = value_metric(MetricType::Counter, static_cast<double>(counters.unrouted));
  unrouted.label = {{"route", "none"}, {"status", "4xx"}};
  family.metric.push_back(std::move(unrouted));
  return family;
}

MetricFamily histogram_family(std::string name, std::string help, const Histogram& histogram) {
  ClientMetric metric;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i <= Histogram::kBuckets; ++i) {
    cumulative += histogram.counts()[i];
    const double bound = i < Histogram::kBuckets ? Histogram::bound(i) : std::numeric_limits<double>::infinity();
    metric.histogram.bucket.push_back({cumulative, bound});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = histogram.sum();
  return {std::move(name), std::move(help), MetricType::Histogram, {std::move(metric)}};
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total_pages = 0.0;
  double resident_pages = 0.0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void add_http(Families& families, const Counters& counters, std::size_t open_connections) {
  families.add(requests_family(counters));
  families.add(histogram_family("request_duration_ms", "From a request's arrival to the end of its answer.", counters.request_ms));
  families.add(histogram_family("time_to_first_token_ms", "From a request's arrival to its first token.", counters.first_token_ms));
  families.add(MetricType::Gauge, "active_requests", "Requests being answered.", counters.active_requests);
  families.add(MetricType::Gauge, "open_streams", "Admitted event streams that have not ended.", counters.open_streams);
  families.add(MetricType::Gauge, "open_connections", "Connections of clients.", static_cast<double>(open_connections));
  families.add(MetricType::Counter, "connections_total", "Connections accepted.", static_cast<double>(counters.connections));
  families.add(MetricType::Counter, "client_disconnects_total", "Clients gone while their request ran.",
               static_cast<double>(counters.disconnects));
  families.add(MetricType::Counter, "write_timeouts_total", "Clients dropped because they took nothing for too long.",
               static_cast<double>(counters.write_timeouts));
}

void add_engine(Families& families, const EngineStats& stats) {
  const auto counter = [&](const char* name, const char* help, double value) {
    families.add(MetricType::Counter, name, help, value);
  };
  const auto gauge = [&](const char* name, const char* help, double value) { families.add(MetricType::Gauge, name, help, value); };
  counter("engine_steps_total", "Batch steps computed.", static_cast<double>(stats.steps));
  counter("prompt_tokens_total", "Prompt tokens computed, recomputed ones included.", static_cast<double>(stats.prompt_tokens));
  counter("generation_tokens_total", "Tokens generated.", static_cast<double>(stats.generated_tokens));
  counter("sequences_submitted_total", "Sequences admitted.", static_cast<double>(stats.submitted));
  counter("sequences_refused_total", "Sequences refused because the queue was full.", static_cast<double>(stats.refused));
  counter("sequences_finished_total", "Sequences that ran to their end.", static_cast<double>(stats.finished));
  counter("sequences_cancelled_total", "Sequences cancelled.", static_cast<double>(stats.cancelled));
  counter("preemptions_total", "Sequences set back to waiting because blocks ran out.", static_cast<double>(stats.preemptions));
  counter("prefill_seconds_total", "Compute time spent on prompts.", stats.prefill_seconds);
  counter("decode_seconds_total", "Compute time spent on generation.", stats.decode_seconds);
  gauge("sequences_waiting", "Sequences in the queue.", stats.waiting);
  gauge("sequences_prefilling", "Sequences whose prompt is being computed.", stats.prefilling);
  gauge("sequences_decoding", "Sequences that are generating.", stats.decoding);
  gauge("kv_blocks_total", "Blocks of the KV pool.", stats.blocks_total);
  gauge("kv_blocks_free", "Blocks of the KV pool that nobody holds, cached ones included.", stats.blocks_free);
  gauge("kv_blocks_cached", "Blocks of the KV pool that nobody holds and whose contents can still be found.", stats.blocks_cached);
  counter("prefix_cache_hit_tokens_total", "Tokens of admitted sequences found in the prefix cache.",
          static_cast<double>(stats.cache_hit_tokens));
  counter("prefix_cache_disk_hit_tokens_total", "Of the tokens found in the prefix cache, those that came from disk.",
          static_cast<double>(stats.cache_disk_hit_tokens));
  counter("prefix_cache_verified_blocks_total", "Cached blocks compared with what was computed, by --kv-verify.",
          static_cast<double>(stats.cache_verified_blocks));
  counter("prefix_cache_miss_tokens_total", "Tokens of admitted sequences not found in the prefix cache.",
          static_cast<double>(stats.cache_miss_tokens));
  counter("prefix_cache_evictions_total", "Cached blocks given away because no empty one was left.",
          static_cast<double>(stats.cache_evictions));
}

void add_disk(Families& families, const DiskCacheStats& disk) {
  const auto counter = [&](const char* name, const char* help, double value) {
    families.add(MetricType::Counter, name, help, value);
  };
  const auto gauge = [&](const char* name, const char* help, double value) { families.add(MetricType::Gauge, name, help, value); };
  gauge("disk_cache_blocks", "Blocks on disk that can be found.", static_cast<double>(disk.records));
  gauge("disk_cache_bytes", "Bytes of the disk cache's files.", static_cast<double>(disk.bytes));
  counter("disk_cache_reads_total", "Blocks read from disk.", static_cast<double>(disk.reads));
  counter("disk_cache_read_bytes_total", "Bytes of these.", static_cast<double>(disk.read_bytes));
  counter("disk_cache_read_errors_total", "Blocks that could not be read, or were damaged.", static_cast<double>(disk.read_errors));
  counter("disk_cache_read_seconds_total", "From request to completion, summed over blocks.", disk.read_seconds);
  counter("disk_cache_writes_total", "Blocks written to disk.", static_cast<double>(disk.writes));
  counter("disk_cache_write_bytes_total", "Bytes of these.", static_cast<double>(disk.write_bytes));
  counter("disk_cache_write_errors_total", "Writes that failed.", static_cast<double>(disk.write_errors));
  counter("disk_cache_write_seconds_total", "From request to completion, summed over blocks.", disk.write_seconds);
  counter("disk_cache_writes_dropped_total", "Blocks not written for want of host buffers, or after an error.",
          static_cast<double>(disk.writes_dropped));
  counter("disk_cache_pruned_total", "Blocks dropped because they were too old or had no room.", static_cast<double>(disk.pruned));
}

}  // namespace

std::string expose(const Counters& counters, std::size_t open_connections, const ServiceStatus& status) {
  Families families;
  add_http(families, counters, open_connections);
  if (status.model != nullptr) {
    const EngineStats stats = status.model->engine->stats();
    add_engine(families, stats);
    if (stats.disk) add_disk(families, *stats.disk);
  }
  families.add(MetricType::Gauge, "process_resident_memory_bytes", "Resident memory of this process.", resident_bytes());
  return families.text();
}

}  // namespace braid::net
