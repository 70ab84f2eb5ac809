// What the HTTP side counts: plain fields of the loop, read when somebody asks for metrics.
#pragma once

#include "braid/result.h"
#include "net/metrics/histogram.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace braid::net {

// Why a request was answered with an error before its work began.
enum class Refusal {
  kMalformed,
  kInvalid,
  kContextLength,
  kTooLarge,
  kUnauthorized,
  kRateLimit,
  kQueueFull,
  kNotReady,
  kDraining,
  kTimeout,
  kInternal
};
inline constexpr std::array<std::string_view, 11> kRefusalNames = {"malformed",    "invalid",    "context_length", "too_large",
                                                                   "unauthorized", "rate_limit", "queue_full",     "not_ready",
                                                                   "draining",     "timeout",    "internal"};

Refusal refusal_of(ErrorCode code);

// Which of the server's waits ran out.
enum class Timeout { kHeader, kBody, kIdle, kQueue, kFirstToken, kTotal, kWrite };
inline constexpr std::array<std::string_view, 7> kTimeoutNames = {"header", "body", "idle", "queue", "first_token", "total", "write"};

struct Counters {
  void count(Refusal reason) { ++refusals[static_cast<std::size_t>(reason)]; }
  void count(Timeout kind) { ++timeouts[static_cast<std::size_t>(kind)]; }

  std::map<std::pair<std::string_view, int>, std::uint64_t> requests;  // by route, a constant, and status
  std::array<std::uint64_t, 6> unrouted{};  // requests that reached no endpoint, by the first digit of their status
  std::array<std::uint64_t, kRefusalNames.size()> refusals{};
  std::array<std::uint64_t, kTimeoutNames.size()> timeouts{};
  std::uint64_t disconnects = 0;  // clients gone while their request ran
  std::uint64_t connections = 0;  // accepted
  std::uint32_t active_requests = 0;
  std::uint32_t open_streams = 0;
  Histogram request_ms{kRequestBounds};
  Histogram first_token_ms{kRequestBounds};
  Histogram inter_token_ms{kTokenBounds};  // between two tokens of one choice, when they are handed to the connection
};

}  // namespace braid::net
