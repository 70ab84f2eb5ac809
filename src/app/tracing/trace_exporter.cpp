#include "app/tracing/trace_exporter.h"

#include "app/tracing/otlp_spans.h"
#include "net/access/loopback.h"

#include <chrono>
#include <fmt/format.h>
#include <new>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {
namespace {

constexpr std::size_t kMostWaiting = 2048;
constexpr std::size_t kMostAtOnce = 512;
constexpr std::size_t kMostReply = std::size_t{1} << 20;  // bytes
constexpr std::chrono::seconds kGathering{1};             // from the first trace to the request that sends it

// ENDPOINT/v1/traces, as OTLP has it.
std::string traces_url(std::string endpoint) {
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint + "/v1/traces";
}

registry::HttpOptions short_waits(const std::string& endpoint, std::string ca_file) {
  registry::HttpOptions http;
  http.direct = net::access::is_loopback_origin(registry::origin_of(endpoint));
  http.ca_file = std::move(ca_file);
  http.connect_timeout = std::chrono::seconds(2);
  http.stall_timeout = std::chrono::seconds(2);
  return http;
}

}  // namespace

TraceExporter::TraceExporter(TraceOptions options, std::string ca_file)
    : options_(std::move(options)), http_(short_waits(options_.endpoint, std::move(ca_file))), url_(traces_url(options_.endpoint)),
      thread_([this]() noexcept { run(); }) {}

TraceExporter::~TraceExporter() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void TraceExporter::take(net::RequestTrace&& trace) noexcept {
  if (trace.parent ? !trace.parent->is_sampled : (due_ += options_.share) < 1.0) return;
  if (!trace.parent) due_ -= 1.0;
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    try {
      if (waiting_.size() < kMostWaiting) {
        waiting_.push_back(std::move(trace));
        count = waiting_.size();
      } else {
        ++lost_;
      }
    } catch (const std::bad_alloc&) {
      ++lost_;
    }
  }
  if (count == 1 || count == kMostAtOnce) arrived_.notify_one();
}

void TraceExporter::run() {
  std::unique_lock lock(mutex_);
  bool is_last = false;
  while (!is_last) {
    arrived_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    arrived_.wait_for(lock, kGathering, [this] { return ended_ || waiting_.size() >= kMostAtOnce; });
    is_last = ended_;
    if (is_last && (waiting_.empty() || is_failing_)) return;
    const std::vector<net::RequestTrace> traces = std::exchange(waiting_, {});
    const std::size_t overrun = std::exchange(lost_, 0);
    lock.unlock();
    send(traces, overrun);
    lock.lock();
  }
}

// What does not arrive is not sent again.
void TraceExporter::send(const std::vector<net::RequestTrace>& traces, std::size_t overrun) {
  lost_here_ += overrun;
  registry::HttpRequest request{.method = "POST", .url = url_, .headers = {"Content-Type: application/json"}};
  request.body = otlp_spans(traces, random_);
  const Result<registry::HttpAnswer> answer = registry::ask(http_, request, kMostReply);
  const bool is_taken = answer && answer->status >= 200 && answer->status < 300;
  if (!is_taken) lost_here_ += traces.size();
  const bool was_failing = std::exchange(is_failing_, !is_taken);
  if (!is_taken && !was_failing) {
    const std::string fault = answer ? fmt::format("{} answers with status {}", url_, answer->status) : answer.error().message;
    spdlog::warn("traces are lost: {}", fault);
  }
  if (is_taken && lost_here_ > 0) spdlog::warn("{} traces were lost; now they arrive", std::exchange(lost_here_, 0));
}

}  // namespace braid::app
