#include "net/metrics/family_list.h"

#include "net/json/write.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <prometheus/text_serializer.h>
#include <utility>

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

void append_number(std::string& out, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  } else {
    out += "null";
  }
}

void append_histogram(std::string& out, const ClientMetric::Histogram& histogram) {
  fmt::format_to(std::back_inserter(out), R"("count":{},"sum":{},"buckets":[)", histogram.sample_count, histogram.sample_sum);
  for (std::size_t i = 0; i < histogram.bucket.size(); ++i) {
    out += i > 0 ? R"(,{"le":)" : R"({"le":)";
    append_number(out, histogram.bucket[i].upper_bound);
    fmt::format_to(std::back_inserter(out), R"(,"count":{}}})", histogram.bucket[i].cumulative_count);
  }
  out += "]}";
}

void append_metric(std::string& out, MetricType type, const ClientMetric& metric) {
  out += R"({"labels":{)";
  for (std::size_t i = 0; i < metric.label.size(); ++i) {
    if (i > 0) out += ',';
    json::append_lossy_string(out, metric.label[i].name);
    out += ':';
    json::append_lossy_string(out, metric.label[i].value);
  }
  out += "},";
  if (type == MetricType::Histogram) return append_histogram(out, metric.histogram);
  out += R"("value":)";
  append_number(out, type == MetricType::Counter ? metric.counter.value : metric.gauge.value);
  out += '}';
}

std::string_view name_of(MetricType type) {
  if (type == MetricType::Histogram) return "histogram";
  return type == MetricType::Counter ? "counter" : "gauge";
}

}  // namespace

void FamilyList::add(MetricFamily family) {
  const bool is_others = family.name.find(':') != std::string::npos;
  if (!family.name.starts_with("process_") && !is_others) family.name.insert(0, "braid_");
  families_.push_back(std::move(family));
}

void FamilyList::add_labelled(FamilyList other, const std::string& label, const std::string& value) {
  for (MetricFamily& family : other.families_) {
    for (ClientMetric& metric : family.metric) metric.label.insert(metric.label.begin(), {label, value});
    const auto same = std::ranges::find(families_, family.name, &MetricFamily::name);
    if (same == families_.end()) {
      families_.push_back(std::move(family));
    } else {
      std::ranges::move(family.metric, std::back_inserter(same->metric));
    }
  }
}

void FamilyList::add_value(MetricType type, std::string_view name, std::string_view help, double value) {
  add({std::string(name), std::string(help), type, {value_metric(type, value)}});
}

void FamilyList::labelled(MetricType type, std::string_view name, std::string_view help, std::string_view label,
                          std::span<const Labelled> values) {
  MetricFamily family{std::string(name), std::string(help), type, {}};
  for (const Labelled& value : values) {
    ClientMetric metric = value_metric(type, value.value);
    metric.label = {{std::string(label), value.label}};
    family.metric.push_back(std::move(metric));
  }
  add(std::move(family));
}

void FamilyList::histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                           std::span<const std::uint64_t> counts, double sum) {
  ClientMetric metric;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    cumulative += counts[i];
    metric.histogram.bucket.push_back({cumulative, i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity()});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = sum;
  add({std::string(name), std::string(help), MetricType::Histogram, {std::move(metric)}});
}

std::string FamilyList::text() const { return prometheus::TextSerializer().Serialize(families_); }

std::string FamilyList::json() const {
  std::string out = "{";
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const MetricFamily& family = families_[i];
    if (i > 0) out += ',';
    json::append_lossy_string(out, family.name);
    fmt::format_to(std::back_inserter(out), R"(:{{"type":"{}","help":)", name_of(family.type));
    json::append_lossy_string(out, family.help);
    out += R"(,"values":[)";
    for (std::size_t j = 0; j < family.metric.size(); ++j) {
      if (j > 0) out += ',';
      append_metric(out, family.type, family.metric[j]);
    }
    out += "]}";
  }
  return out + "}";
}

}  // namespace braid::net
