#include "net/metrics/revisions.h"

#include "braid/adapters.h"
#include "braid/weights.h"

#include <string>
#include <utility>

namespace braid::net {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// What is always 1 and tells by its labels, and what is counted of it.
void add_sample(MetricFamily& info, MetricFamily& counts, std::vector<ClientMetric::Label> labels, double count) {
  ClientMetric told;
  told.gauge.value = 1.0;
  told.label = labels;
  info.metric.push_back(std::move(told));
  ClientMetric counted;
  counted.counter.value = count;
  counted.label = std::move(labels);
  counts.metric.push_back(std::move(counted));
}

void add_pair(FamilyList& families, MetricFamily info, MetricFamily counts) {
  if (info.metric.empty()) return;
  families.add(std::move(info));
  families.add(std::move(counts));
}

}  // namespace

void add_revisions(FamilyList& families, const ModelDirectory& models) {
  MetricFamily weights{"weights_info", "1, with the revision that new requests get.", MetricType::Gauge, {}};
  MetricFamily updates{"weight_updates_total", "Newer weights that took the place of others.", MetricType::Counter, {}};
  const auto add = [&](const std::string& id, const LiveWeights* live) {
    if (live == nullptr) return;
    const WeightFacts& facts = live->facts();
    add_sample(weights, updates, {{"model", id}, {"revision", facts.revision}}, static_cast<double>(facts.updates));
    updates.metric.back().label.pop_back();  // it goes on through all revisions
  };
  MetricFamily adapters{"adapter_info", "1, with the revision that the adapter's name stands for.", MetricType::Gauge, {}};
  MetricFamily requests{"adapter_requests_total", "Requests that have named this revision.", MetricType::Counter, {}};
  for (const ServedModel* model : models.all()) {
    add(model->id, model->weights);
    if (model->adapters == nullptr) continue;
    for (const AdapterFacts& facts : model->adapters->list())
      add_sample(adapters, requests, {{"model", model->id}, {"adapter", facts.name}, {"revision", facts.revision}},
                 static_cast<double>(facts.requests));
  }
  for (const ServedNetwork* network : models.networks()) add(network->id, network->weights);
  add_pair(families, std::move(weights), std::move(updates));
  add_pair(families, std::move(adapters), std::move(requests));
}

}  // namespace braid::net
