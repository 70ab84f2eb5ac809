#include "net/log/request_record.h"

#include "net/log/line.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <spdlog/logger.h>
#include <utility>

namespace braid::net {
namespace {

namespace level = spdlog::level;

constexpr std::size_t kMaxPathBytes = 256;
constexpr int kClientClosedRequest = 499;  // nginx's name for it

struct Ending {
  std::string_view name;
  level::level_enum level = level::off;
};

Ending ending_of(RequestEnd reason) {
  switch (reason) {
    case RequestEnd::kDone:
      return {"done", level::off};
    case RequestEnd::kRefused:
      return {"refused", level::off};
    case RequestEnd::kClientGone:
      return {"client gone", level::info};
    case RequestEnd::kWriteTimeout:
      return {"write timeout", level::info};
    case RequestEnd::kSlowReader:
      return {"slow reader", level::info};
    case RequestEnd::kQueueTimeout:
      return {"queue timeout", level::info};
    case RequestEnd::kFirstTokenTimeout:
      return {"first token timeout", level::info};
    case RequestEnd::kTotalTimeout:
      return {"total timeout", level::info};
    case RequestEnd::kCancelled:
      return {"cancelled by id", level::info};
    case RequestEnd::kDrain:
      return {"server drain", level::warn};
    case RequestEnd::kInternal:
      return {"internal", level::err};
  }
  return {};
}

std::string_view name_of(http::Method method) {
  switch (method) {
    case http::Method::kGet:
      return "GET";
    case http::Method::kHead:
      return "HEAD";
    case http::Method::kPost:
      return "POST";
    case http::Method::kDelete:
      return "DELETE";
    case http::Method::kOptions:
      return "OPTIONS";
    case http::Method::kOther:
      return "-";
  }
  return {};
}

// Which wait of the server's ran out, if one did.
std::optional<Timeout> timeout_of(RequestEnd reason) {
  switch (reason) {
    case RequestEnd::kWriteTimeout:
      return Timeout::kWrite;
    case RequestEnd::kQueueTimeout:
      return Timeout::kQueue;
    case RequestEnd::kFirstTokenTimeout:
      return Timeout::kFirstToken;
    case RequestEnd::kTotalTimeout:
      return Timeout::kTotal;
    case RequestEnd::kDone:
    case RequestEnd::kRefused:
    case RequestEnd::kClientGone:
    case RequestEnd::kSlowReader:
    case RequestEnd::kCancelled:
    case RequestEnd::kDrain:
    case RequestEnd::kInternal:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

RequestEnd request_end_of(const Error& error) {
  if (error.code == ErrorCode::kCancelled) return RequestEnd::kCancelled;
  if (error.code == ErrorCode::kDraining) return RequestEnd::kDrain;
  if (error.code == ErrorCode::kOverloaded) return RequestEnd::kQueueTimeout;  // it had been admitted
  if (error.code == ErrorCode::kTimeout) return RequestEnd::kTotalTimeout;
  if (error.code == ErrorCode::kInvalidArgument) return RequestEnd::kDone;  // its own rules left no token
  return RequestEnd::kInternal;
}

RequestRecord::RequestRecord(Counters& counters, const RequestLogOptions& log, const http::Connection& connection)
    : counters_(counters), log_(log), connection_(connection), bytes_before_(connection.bytes_written()) {}

void RequestRecord::begin(const http::Request& request) {
  id_ = request.request_id;
  method_ = name_of(request.method);
  if (log_.access && !log_.proxies.empty()) forwarded_for_ = request.forwarded_for;
  if (log_.traces != nullptr) trace_parent_ = parse_traceparent(request.traceparent);
  path_ = request.target.substr(0, request.target.find('?'));  // a query may hold secrets
  if (path_.size() > kMaxPathBytes) path_.resize(kMaxPathBytes);
}

void RequestRecord::route(std::string_view path) {
  route_ = path;
  path_ = {};
  ++counters_.active_requests;
}

void RequestRecord::end(int answer_status) {
  status = answer_status;
  reason = answer_status < 400 ? RequestEnd::kDone : RequestEnd::kRefused;
}

void RequestRecord::lose() {
  status = kClientClosedRequest;
  if (connection_.closed()) {
    reason = RequestEnd::kDrain;
  } else if (connection_.timed_out()) {
    reason = RequestEnd::kWriteTimeout;
  } else {
    ++counters_.disconnects;
    reason = RequestEnd::kClientGone;
  }
}

RequestRecord::~RequestRecord() {
  const http::Clock::time_point now = http::Clock::now();
  const double total_ms = std::chrono::duration<double, std::milli>(now - start_).count();
  if (!route_.empty()) {
    --counters_.active_requests;
    ++counters_.requests[{route_, status}];
    counters_.request_ms.observe(total_ms);
  } else {
    ++counters_.unrouted.at(static_cast<std::size_t>(status / 100));
  }
  if (const std::optional<Timeout> timeout = timeout_of(reason)) counters_.count(*timeout);
  if (reason >= RequestEnd::kClientGone) write_abort();
  if (log_.access) write_access(total_ms);
  if (log_.traces != nullptr && work_ != http::Clock::time_point()) give_trace(now);
}

void RequestRecord::give_trace(http::Clock::time_point now) {
  RequestTrace trace;
  trace.parent = std::move(trace_parent_);
  trace.request_id = id_;
  trace.method = method_;
  trace.route = route_;
  trace.ending = ending_of(reason).name;
  trace.status = status;
  trace.model = model;
  trace.error = error;
  trace.usage = usage;
  trace.end = now - start_;
  trace.begin = std::chrono::system_clock::now() - trace.end;
  trace.work = work_ - start_;
  if (submitted_ != http::Clock::time_point()) trace.submitted = submitted_ - start_;
  log_.traces->take(std::move(trace));
}

void RequestRecord::write_abort() const {
  const Ending& ending = ending_of(reason);
  if (!log_.logger->should_log(ending.level)) return;
  LogLine line(log_.format, "request aborted");
  line.add("request", id_).add("reason", ending.name);
  if (!error.empty()) line.add("error", error);
  log_.logger->log(ending.level, spdlog::string_view_t(line.text()));
}

void RequestRecord::write_access(double total_ms) const {
  LogLine line(log_.format, "request");
  line.add("request", id_).add("peer", connection_.peer());
  if (!log_.proxies.empty()) line.add("client", log_.proxies.client(connection_.peer(), forwarded_for_));
  line.add("key", key).add("method", method_);
  line.add("route", route_.empty() ? std::string_view(path_) : route_);
  line.add("status", std::int64_t{status}).add("reason", ending_of(reason).name).add("model", model);
  line.add("prompt_tokens", std::int64_t{usage.prompt_tokens}).add("cached_tokens", std::int64_t{usage.cached_tokens});
  line.add("generated_tokens", std::int64_t{usage.completion_tokens});
  line.add("queue_ms", usage.queue_ms).add("first_token_ms", usage.prompt_ms).add("total_ms", total_ms);
  line.add("bytes", static_cast<std::int64_t>(connection_.bytes_written() - bytes_before_));
  log_.logger->log(level::info, spdlog::string_view_t(line.text()));
}

void RequestRecord::log(level::level_enum line_level, std::string_view message, std::string_view name, std::string_view value) const {
  if (!log_.logger->should_log(line_level)) return;
  LogLine line(log_.format, message);
  line.add("request", id_).add(name, value);
  log_.logger->log(line_level, spdlog::string_view_t(line.text()));
}

}  // namespace braid::net
