// Metrics gathered for one scrape, and their two forms.
#pragma once

#include <cstdint>
#include <prometheus/metric_family.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

// Every name, its unit and meaning stand in docs/metrics.md; a test holds it against what is served. Names are served as braid_…, but for
// those that begin with process_, which Prometheus defines, and those with a colon, which are of other servers (other_names.h).
class FamilyList {
 public:
  struct Labelled {
    std::string label;  // the value of the family's one label
    double value = 0.0;
  };

  void counter(std::string_view name, std::string_view help, auto value) {
    add_value(prometheus::MetricType::Counter, name, help, static_cast<double>(value));
  }
  void gauge(std::string_view name, std::string_view help, auto value) {
    add_value(prometheus::MetricType::Gauge, name, help, static_cast<double>(value));
  }
  void labelled(prometheus::MetricType type, std::string_view name, std::string_view help, std::string_view label,
                std::span<const Labelled> values);
  // `counts` are [bounds + 1] and not cumulative.
  void histogram(std::string_view name, std::string_view help, std::span<const double> bounds, std::span<const std::uint64_t> counts,
                 double sum);
  void add(prometheus::MetricFamily family);

  // Takes over what `other` has, its values with one more label, into the families of the same names where there are such.
  void add_labelled(FamilyList other, const std::string& label, const std::string& value);

  // Prometheus's text format 0.0.4.
  std::string text() const;

  // {"<name>":{"type":…,"help":…,"values":[{"labels":{…},"value":…}]}}; a histogram's have "count", "sum" and cumulative "buckets"
  // with the bound "le", null for the last.
  std::string json() const;

 private:
  void add_value(prometheus::MetricType type, std::string_view name, std::string_view help, double value);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace braid::net
