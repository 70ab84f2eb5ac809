// What the HTTP side counts: plain fields of the loop, turned into Prometheus text at scrape time.
#pragma once

#include <net/router.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace braid::net {

// Bounds double from 1 ms to about 131 s; observations are in milliseconds.
class Histogram {
 public:
  static constexpr std::size_t kBuckets = 18;

  static double bound(std::size_t bucket) { return static_cast<double>(std::uint64_t{1} << bucket); }

  void observe(double value) {
    std::size_t bucket = 0;
    while (bucket < kBuckets && value > bound(bucket)) ++bucket;
    ++counts_[bucket];
    sum_ += value;
  }

  // [kBuckets + 1]: not cumulative; the last one is above every bound.
  const std::array<std::uint64_t, kBuckets + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kBuckets + 1> counts_{};
  double sum_ = 0.0;
};

struct Counters {
  std::map<std::pair<Endpoint, int>, std::uint64_t> requests;  // by endpoint and status
  std::uint64_t unrouted = 0;                                  // requests that reached no endpoint
  std::uint64_t disconnects = 0;                               // clients gone while their request ran
  std::uint64_t write_timeouts = 0;                            // clients dropped because they took nothing
  std::uint64_t connections = 0;                               // accepted
  std::uint32_t active_requests = 0;
  std::uint32_t open_streams = 0;
  Histogram request_ms;
  Histogram first_token_ms;
};

}  // namespace braid::net
