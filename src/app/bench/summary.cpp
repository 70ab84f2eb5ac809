#include "app/bench/summary.h"

#include "braid/printable.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <utility>

namespace braid::bench {
namespace {

double tpot_ms(const Outcome& outcome) {
  if (outcome.output_tokens < 2) return 0;
  return (outcome.e2el_ms - outcome.ttft_ms) / static_cast<double>(outcome.output_tokens - 1);
}

bool keeps(const Outcome& outcome, const Goodput& limits) {
  const auto within = [](const std::optional<double>& limit, double value) { return !limit || value <= *limit; };
  return within(limits.ttft_ms, outcome.ttft_ms) && within(limits.tpot_ms, tpot_ms(outcome)) && within(limits.e2el_ms, outcome.e2el_ms);
}

constexpr double kMebibyte = 1024.0 * 1024.0;

double rate_of_items(const Summary& summary) {
  return summary.duration_s > 0 ? static_cast<double>(summary.items) / summary.duration_s : 0.0;
}

// Of them so many were busy, on average.
double processors_of(const Summary& summary) { return summary.duration_s > 0 ? summary.server->cpu_seconds / summary.duration_s : 0.0; }

std::string distribution_json(std::string_view name, const Distribution& d) {
  return fmt::format(
      "\"mean_{0}_ms\":{1},\"median_{0}_ms\":{2},\"std_{0}_ms\":{3},\"p50_{0}_ms\":{4},\"p90_{0}_ms\":{5},\"p95_{0}_ms\":{6},"
      "\"p99_{0}_ms\":{7},\"max_{0}_ms\":{8},",
      name, d.mean, d.median, d.std, d.p50, d.p90, d.p95, d.p99, d.max);
}

std::string distribution_line(std::string_view name, const Distribution& d) {
  return fmt::format("{:<26}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}\n", name, d.mean, d.p50, d.p90, d.p99, d.max);
}

}  // namespace

double percentile(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

Distribution describe(std::vector<double> sample) {
  Distribution result;
  if (sample.empty()) return result;
  std::sort(sample.begin(), sample.end());
  const auto count = static_cast<double>(sample.size());
  result.mean = std::accumulate(sample.begin(), sample.end(), 0.0) / count;
  double squares = 0;
  for (const double value : sample) squares += (value - result.mean) * (value - result.mean);
  result.std = std::sqrt(squares / count);
  result.median = percentile(sample, 50);
  result.p50 = result.median;
  result.p90 = percentile(sample, 90);
  result.p95 = percentile(sample, 95);
  result.p99 = percentile(sample, 99);
  result.max = sample.back();
  return result;
}

Summary summarise(const std::vector<Outcome>& outcomes, double duration_s, const std::optional<Goodput>& goodput) {
  Summary summary;
  summary.duration_s = duration_s;
  std::vector<double> ttft, tpot, itl, e2el;
  std::int64_t good = 0;
  for (const auto& outcome : outcomes) {
    if (!outcome.failure.empty()) {
      ++summary.failures[outcome.failure];
      if (summary.first_failure.empty()) summary.first_failure = outcome.failure + ": " + outcome.message;
      continue;
    }
    ++summary.completed;
    summary.without_usage += outcome.has_usage ? 0 : 1;
    summary.input_tokens += outcome.input_tokens;
    summary.output_tokens += outcome.output_tokens;
    ttft.push_back(outcome.ttft_ms);
    e2el.push_back(outcome.e2el_ms);
    itl.insert(itl.end(), outcome.itl_ms.begin(), outcome.itl_ms.end());
    if (outcome.output_tokens > 1) tpot.push_back(tpot_ms(outcome));
    if (goodput && keeps(outcome, *goodput)) ++good;
  }
  const auto rate = [&](std::int64_t count) { return duration_s > 0 ? static_cast<double>(count) / duration_s : 0.0; };
  summary.request_throughput = rate(summary.completed);
  summary.output_throughput = rate(summary.output_tokens);
  summary.total_throughput = rate(summary.input_tokens + summary.output_tokens);
  if (goodput) summary.goodput = rate(good);
  summary.ttft = describe(std::move(ttft));
  summary.tpot = describe(std::move(tpot));
  summary.itl = describe(std::move(itl));
  summary.e2el = describe(std::move(e2el));
  return summary;
}

std::string to_report(const Summary& summary) {
  std::string out = fmt::format(
      "Completed requests        {:>10}\nDuration (s)              {:>10.2f}\nInput tokens              {:>10}\n"
      "Output tokens             {:>10}\nRequests/s                {:>10.2f}\nOutput tokens/s           {:>10.2f}\n"
      "Total tokens/s            {:>10.2f}\n",
      summary.completed, summary.duration_s, summary.input_tokens, summary.output_tokens, summary.request_throughput,
      summary.output_throughput, summary.total_throughput);
  auto to = std::back_inserter(out);
  if (summary.items > 0) fmt::format_to(to, "Texts or predictions/s    {:>10.2f}\n", rate_of_items(summary));
  if (summary.server)
    fmt::format_to(to, "Server's processors       {:>10.2f}\nServer's memory (MiB)     {:>10.1f}\n", processors_of(summary),
                   summary.server->resident_bytes / kMebibyte);
  if (summary.goodput) fmt::format_to(to, "Goodput (requests/s)      {:>10.2f}\n", *summary.goodput);
  if (summary.without_usage > 0 && summary.items == 0) fmt::format_to(to, "Without usage (chunks counted) {:>5}\n", summary.without_usage);
  for (const auto& [kind, count] : summary.failures) fmt::format_to(to, "Failed: {:<18}{:>10}\n", kind, count);
  if (!summary.first_failure.empty()) fmt::format_to(to, "First failure: {}\n", printable(summary.first_failure));
  fmt::format_to(to, "\n{:<26}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "ms", "mean", "p50", "p90", "p99", "max");
  if (summary.items == 0) {
    out += distribution_line("Time to first token", summary.ttft);
    out += distribution_line("Time per output token", summary.tpot);
    out += distribution_line("Inter-token latency", summary.itl);
  }
  out += distribution_line("End-to-end latency", summary.e2el);
  return out;
}

std::string to_json(const Summary& summary, const BenchOptions& options) {
  std::string failures;
  std::int64_t failed = 0;
  for (const auto& [kind, count] : summary.failures) {
    failures += fmt::format("{}\"{}\":{}", failures.empty() ? "" : ",", kind, count);
    failed += count;
  }
  const std::string rate = std::isinf(options.request_rate) ? "\"inf\"" : fmt::format("{}", options.request_rate);
  std::string out = fmt::format(
      "{{\"num_prompts\":{},\"max_concurrency\":{},\"request_rate\":{},\"seed\":{},\"completed\":{},\"failed\":{},\"failures\":{{{}}},"
      "\"duration\":{},\"total_input_tokens\":{},\"total_output_tokens\":{},\"request_throughput\":{},\"output_throughput\":{},"
      "\"total_token_throughput\":{},",
      options.num_prompts, options.max_concurrency, rate, options.seed, summary.completed, failed, failures, summary.duration_s,
      summary.input_tokens, summary.output_tokens, summary.request_throughput, summary.output_throughput, summary.total_throughput);
  if (summary.items > 0) out += fmt::format("\"items\":{},\"item_throughput\":{},", summary.items, rate_of_items(summary));
  if (summary.server)
    out += fmt::format("\"server_cpu_seconds\":{},\"server_processors\":{},\"server_resident_bytes\":{},", summary.server->cpu_seconds,
                       processors_of(summary), summary.server->resident_bytes);
  if (summary.goodput) out += fmt::format("\"request_goodput\":{},", *summary.goodput);
  out += distribution_json("ttft", summary.ttft) + distribution_json("tpot", summary.tpot) + distribution_json("itl", summary.itl) +
         distribution_json("e2el", summary.e2el);
  out.back() = '}';
  return out + "\n";
}

}  // namespace braid::bench
