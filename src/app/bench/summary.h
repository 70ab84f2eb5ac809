// Figures over all outcomes, by the definitions of vLLM's benchmark.
#pragma once

#include "app/bench/bench.h"
#include "app/bench/outcome.h"

#include <map>
#include <string>
#include <vector>

namespace braid::bench {

// Of a sample in milliseconds; all zero for an empty one.
struct Distribution {
  double mean = 0, median = 0, std = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};

// What of the server its metrics say.
struct ServerFigures {
  double cpu_seconds = 0;
  double resident_bytes = 0;
};

struct Summary {
  std::int64_t completed = 0;
  std::map<std::string, std::int64_t> failures;  // by kind
  std::string first_failure;                     // what the first one said
  std::int64_t without_usage = 0;                // completed requests whose tokens are counted by chunks
  std::int64_t items = 0;               // texts or predictions of completed requests whose answers came whole; 0: they were streams
  std::optional<ServerFigures> server;  // processor time during the run, memory after it
  double duration_s = 0;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  double request_throughput = 0;       // completed requests a second
  double output_throughput = 0;        // tokens a second
  double total_throughput = 0;         // input and output tokens a second
  std::optional<double> goodput;       // requests a second that kept all limits
  Distribution ttft, tpot, itl, e2el;  // tpot: (e2el - ttft) / (output tokens - 1), of requests with two tokens or more
};

// Linear interpolation between closest ranks, as numpy.percentile does; `sorted` ascends.
double percentile(const std::vector<double>& sorted, double percent);
Distribution describe(std::vector<double> sample);
Summary summarise(const std::vector<Outcome>& outcomes, double duration_s, const std::optional<Goodput>& goodput);

std::string to_report(const Summary& summary);
std::string to_json(const Summary& summary, const BenchOptions& options);

}  // namespace braid::bench
