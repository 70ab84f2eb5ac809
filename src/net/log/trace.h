// What a request's trace consists of, and who takes it.
#pragma once

#include "braid/token_event.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace braid::net {

// The caller's place in its own trace (W3C Trace Context).
struct TraceParent {
  std::string trace_id;  // 32 hexadecimal digits
  std::string span_id;   // 16 of them
  bool is_sampled = false;
};

// Of a header `traceparent`; nullopt when it is none that could be gone on from.
std::optional<TraceParent> parse_traceparent(std::string_view text);

// A request that has ended, with the times between its phases from its beginning on.
struct RequestTrace {
  using Nanoseconds = std::chrono::nanoseconds;

  std::optional<TraceParent> parent;
  std::string request_id;
  std::string_view method;  // these three are constants
  std::string_view route;
  std::string_view ending;
  int status = 0;
  std::string model;  // empty: none has worked for it
  std::string error;  // why it was aborted, where there is more to say
  Usage usage;

  std::chrono::system_clock::time_point begin;
  Nanoseconds end{0};
  Nanoseconds work{0};                   // its body is looked at
  std::optional<Nanoseconds> submitted;  // to the engine; nullopt: it was not
};

class TraceSink {
 public:
  TraceSink() = default;
  virtual ~TraceSink() = default;
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;

  // Loop only, and at once: what cannot be kept is lost.
  virtual void take(RequestTrace&& trace) noexcept = 0;
};

}  // namespace braid::net
