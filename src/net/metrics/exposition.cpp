#include "net/metrics/exposition.h"

#include "braid/model_host.h"
#include "net/metrics/revisions.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labelled = FamilyList::Labelled;

MetricFamily requests_family(const Counters& counters) {
  MetricFamily family{"requests_total", "Requests answered, by route and status.", MetricType::Counter, {}};
  const auto add = [&family](std::string route, std::string status, std::uint64_t count) {
    ClientMetric metric;
    metric.counter.value = static_cast<double>(count);
    metric.label = {{"route", std::move(route)}, {"status", std::move(status)}};
    family.metric.push_back(std::move(metric));
  };
  for (const auto& [key, count] : counters.requests) add(std::string(key.first), std::to_string(key.second), count);
  for (const std::size_t digit : {2U, 4U, 5U}) add("none", std::to_string(digit) + "xx", counters.unrouted[digit]);
  return family;
}

template <class Enum>
std::vector<Labelled> by_name(const std::array<std::uint64_t, count_of<Enum>()>& counts) {
  std::vector<Labelled> values;
  for (std::size_t i = 0; i < counts.size(); ++i)
    values.push_back({std::string(name_of(static_cast<Enum>(i))), static_cast<double>(counts[i])});
  return values;
}

void add_histogram(FamilyList& families, std::string_view name, std::string_view help, const Histogram& histogram) {
  families.histogram(name, help, histogram.bounds(), histogram.counts(), histogram.sum());
}

}  // namespace

void add_http(FamilyList& families, const Counters& counters, const http::ConnectionSet& connections) {
  families.add(requests_family(counters));
  families.labelled(MetricType::Counter, "requests_refused_total", "Requests answered with an error before their work began.", "reason",
                    by_name<Refusal>(counters.refusals));
  families.labelled(MetricType::Counter, "timeouts_total", "Waits of the server for a client or a request that ran out.", "kind",
                    by_name<Timeout>(counters.timeouts));
  add_histogram(families, "request_duration_ms", "From a request's arrival to the end of its answer.", counters.request_ms);
  add_histogram(families, "time_to_first_token_ms", "From a request's arrival to its first token.", counters.first_token_ms);
  add_histogram(families, "inter_token_latency_ms", "Between two tokens of a choice.", counters.inter_token_ms);
  families.gauge("active_requests", "Requests being answered.", counters.active_requests);
  families.gauge("open_streams", "Admitted event streams that have not ended.", counters.open_streams);
  families.gauge("open_connections", "Connections of clients.", connections.size());
  families.gauge("client_backlog_bytes", "Bytes of answers that wait here for clients who do not read.", connections.backlog_bytes());
  families.counter("connections_total", "Connections accepted.", counters.connections);
  families.counter("client_disconnects_total", "Clients gone while their request ran.", counters.disconnects);
  families.counter("policy_steps_total", "Rows of observations that policies of networks have answered with actions.",
                   counters.policy_steps);
}

void add_system(FamilyList& families, const SystemFigures& figures) {
  families.gauge("process_resident_memory_bytes", "Resident memory of this process.", figures.resident_bytes);
  families.counter("process_cpu_user_seconds_total", "Processor time of this process in its own code.", figures.cpu_user_seconds);
  families.counter("process_cpu_system_seconds_total", "Processor time of this process in the kernel.", figures.cpu_system_seconds);
  families.gauge("process_open_fds", "Open files of this process, connections included.", figures.open_files);
  families.gauge("process_max_fds", "Most files that it may open.", figures.max_files);

  std::vector<Labelled> some, full, some_share, full_share;
  for (const SystemFigures::Pressure& pressure : figures.pressure) {
    some.push_back({pressure.resource, pressure.some_seconds});
    full.push_back({pressure.resource, pressure.full_seconds});
    some_share.push_back({pressure.resource, pressure.some_share});
    full_share.push_back({pressure.resource, pressure.full_share});
  }
  if (!figures.pressure.empty()) {
    families.labelled(MetricType::Counter, "pressure_some_seconds_total", "Time in which a task of the machine waited for it.", "resource",
                      some);
    families.labelled(MetricType::Counter, "pressure_full_seconds_total", "Time in which all tasks of the machine waited for it.",
                      "resource", full);
    families.labelled(MetricType::Gauge, "pressure_some_ratio", "The same as a share of the last 10 s.", "resource", some_share);
    families.labelled(MetricType::Gauge, "pressure_full_ratio", "The same as a share of the last 10 s.", "resource", full_share);
  }
  const auto gauge = [&families](const char* name, const char* help, std::optional<double> value) {
    if (value) families.gauge(name, help, *value);
  };
  gauge("cgroup_memory_usage_bytes", "Memory of this process's control group, page cache included.", figures.group_memory_bytes);
  gauge("cgroup_memory_limit_bytes", "The tightest limit on it.", figures.group_memory_limit_bytes);
  gauge("cgroup_cpu_limit", "The tightest limit on the group, in processors.", figures.group_cpu_limit);
  if (figures.group_cpu_seconds) families.counter("cgroup_cpu_seconds_total", "Processor time of the group.", *figures.group_cpu_seconds);
  if (figures.group_throttled_seconds)
    families.counter("cgroup_cpu_throttled_seconds_total", "Time in which the group was held back by its limit.",
                     *figures.group_throttled_seconds);
}

void add_ranks(FamilyList& families, std::span<const RankSeconds> ranks) {
  std::vector<FamilyList::Labelled> compute, exchange;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    compute.push_back({std::to_string(rank), ranks[rank].compute});
    exchange.push_back({std::to_string(rank), ranks[rank].exchange});
  }
  families.labelled(MetricType::Counter, "rank_compute_seconds_total", "Time in which a rank of the model computed.", "rank", compute);
  families.labelled(MetricType::Counter, "rank_exchange_seconds_total",
                    "Time in which a rank waited for the others and for what they sent.", "rank", exchange);
}

// Of several models each series says of which it is, also where only one of them is loaded.
void add_engines(FamilyList& families, const ModelDirectory& models, bool are_several) {
  const auto add = [](FamilyList& own, const ServedModel& model) {
    add_engine(own, model.engine->stats());
    if (model.ranks) add_ranks(own, model.ranks());
  };
  if (models.all().size() == 1 && !are_several) return add(families, *models.all().front());
  for (const ServedModel* model : models.all()) {
    FamilyList engine;
    add(engine, *model);
    families.add_labelled(std::move(engine), "model", model->id);
  }
}

void add_predictor(FamilyList& families, const PredictorStats& stats) {
  families.counter("predictions_total", "Predictions that have ended with outputs.", stats.finished);
  families.counter("predictions_failed_total", "Predictions that have ended with an error.", stats.failed);
  families.counter("predictions_refused_total", "Predictions refused because too many waited.", stats.refused);
  families.counter("prediction_evaluations_total", "Evaluations begun, each of one prediction or of several together.", stats.evaluations);
  families.gauge("predictions_waiting", "Predictions in the queue.", stats.waiting);
  families.gauge("predictions_running", "Predictions being computed.", stats.running);
}

// Each series says of which network it is.
void add_predictors(FamilyList& families, std::span<const ServedNetwork* const> networks) {
  for (const ServedNetwork* network : networks) {
    FamilyList predictor;
    add_predictor(predictor, network->predictor->stats());
    families.add_labelled(std::move(predictor), "model", network->id);
  }
}

FamilyList gather_metrics(const Counters& counters, const http::ConnectionSet& connections, const ServiceStatus& status,
                          const SystemFigures& figures) {
  FamilyList families;
  add_http(families, counters, connections);
  add_engines(families, status.models, status.host != nullptr && status.host->known().size() > 1);
  add_revisions(families, status.models);
  add_predictors(families, status.models.networks());
  add_system(families, figures);
  return families;
}

}  // namespace braid::net
