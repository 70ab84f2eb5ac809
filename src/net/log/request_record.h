// What is known of one request, from its arrival to its end, which counts it and writes about it.
#pragma once

#include "braid/result.h"
#include "braid/token_event.h"
#include "net/http/connection.h"
#include "net/http/request.h"
#include "net/log/request_log.h"
#include "net/metrics/counters.h"

#include <cstdint>
#include <optional>
#include <spdlog/common.h>
#include <string>
#include <string_view>

namespace braid::net {

// How a request ended. From kClientGone on it was aborted: the log has one line about it.
enum class RequestEnd {
  kDone,     // the client has its answer, or the error that it asked for
  kRefused,  // an error before the work began
  kClientGone,
  kWriteTimeout,
  kSlowReader,  // the engine has dropped it
  kQueueTimeout,
  kFirstTokenTimeout,
  kTotalTimeout,
  kCancelled,  // by its id
  kDrain,      // the server stopped
  kInternal,
};

// Why an answer that had begun ended with `error`.
RequestEnd request_end_of(const Error& error);

// Loop only. Made when a request has arrived, destroyed when it has been answered or given up: by then `reason` and `status` are set.
class RequestRecord {
 public:
  // All of them outlive it. `log` has a logger.
  RequestRecord(Counters& counters, const RequestLogOptions& log, const http::Connection& connection);
  ~RequestRecord();
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  void begin(const http::Request& request);
  void route(std::string_view path);  // of the endpoint that it has reached, for metrics and the log: a constant

  // Of a generation: from `start` on its body is looked at; now its sequences are the engine's.
  void begin_work(http::Clock::time_point start) { work_ = start; }
  void submit() { submitted_ = http::Clock::now(); }

  void end(int answer_status);  // the client has been sent the answer with this status, to its end
  void lose();                  // it has not: the connection says why

  // A line about this request besides those of its end.
  void log(spdlog::level::level_enum level, std::string_view message, std::string_view name, std::string_view value) const;

  RequestEnd reason = RequestEnd::kInternal;
  int status = 500;
  std::string key;    // the API key's name, or empty
  std::string model;  // empty: none has worked for it
  Usage usage;
  std::string error;  // why it was aborted, where there is more to say

 private:
  void write_abort() const;
  void write_access(double total_ms) const;
  void give_trace(http::Clock::time_point now);

  Counters& counters_;
  const RequestLogOptions& log_;
  const http::Connection& connection_;
  std::string id_;
  std::string_view method_ = "-";
  std::string path_;           // of a request that reached no endpoint
  std::string_view route_;     // empty: it has reached no endpoint
  std::string forwarded_for_;  // of a line of the access log
  std::uint64_t bytes_before_;
  http::Clock::time_point start_ = http::Clock::now();
  http::Clock::time_point work_{};       // the epoch: it generates nothing
  http::Clock::time_point submitted_{};  // the epoch: it has not come so far
  std::optional<TraceParent> trace_parent_;
};

}  // namespace braid::net
