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
Refusal refusal_of(ErrorCode code);

// Which of the server's waits ran out.
enum class Timeout { kHeader, kBody, kIdle, kQueue, kFirstToken, kTotal, kWrite };

// The label's values; empty behind the last one.
constexpr std::string_view name_of(Refusal value) {
  switch (value) {
    case Refusal::kMalformed:
      return "malformed";
    case Refusal::kInvalid:
      return "invalid";
    case Refusal::kContextLength:
      return "context_length";
    case Refusal::kTooLarge:
      return "too_large";
    case Refusal::kUnauthorized:
      return "unauthorized";
    case Refusal::kRateLimit:
      return "rate_limit";
    case Refusal::kQueueFull:
      return "queue_full";
    case Refusal::kNotReady:
      return "not_ready";
    case Refusal::kDraining:
      return "draining";
    case Refusal::kTimeout:
      return "timeout";
    case Refusal::kInternal:
      return "internal";
  }
  return {};
}

constexpr std::string_view name_of(Timeout value) {
  switch (value) {
    case Timeout::kHeader:
      return "header";
    case Timeout::kBody:
      return "body";
    case Timeout::kIdle:
      return "idle";
    case Timeout::kQueue:
      return "queue";
    case Timeout::kFirstToken:
      return "first_token";
    case Timeout::kTotal:
      return "total";
    case Timeout::kWrite:
      return "write";
  }
  return {};
}

// How many values have a name: those of an enum without gaps.
template <class Enum>
constexpr std::size_t count_of() {
  std::size_t count = 0;
  while (!name_of(static_cast<Enum>(count)).empty()) ++count;
  return count;
}

struct Counters {
  void count(Refusal reason) { ++refusals[static_cast<std::size_t>(reason)]; }
  void count(Timeout kind) { ++timeouts[static_cast<std::size_t>(kind)]; }

  std::map<std::pair<std::string_view, int>, std::uint64_t> requests;  // by route, a constant, and status
  std::array<std::uint64_t, 6> unrouted{};  // requests that reached no endpoint, by the first digit of their status
  std::array<std::uint64_t, count_of<Refusal>()> refusals{};
  std::array<std::uint64_t, count_of<Timeout>()> timeouts{};
  std::uint64_t disconnects = 0;  // clients gone while their request ran
  std::uint64_t connections = 0;  // accepted
  std::uint32_t active_requests = 0;
  std::uint32_t open_streams = 0;
  Histogram request_ms{kRequestBounds};
  Histogram first_token_ms{kRequestBounds};
  Histogram inter_token_ms{kTokenBounds};  // between two tokens of one choice, when they are handed to the connection

  // Of generations that came to their end, each with all its choices.
  Histogram prompt_tokens{kCountBounds};
  Histogram generated_tokens{kCountBounds};
  Histogram token_limits{kCountBounds};  // what a choice might have
  Histogram choices{kCountBounds};
  Histogram queue_ms{kRequestBounds};
  Histogram prefill_ms{kRequestBounds};  // from the queue to the first token
  Histogram decode_ms{kRequestBounds};   // from the first token to the last
  Histogram inference_ms{kRequestBounds};
  Histogram answer_ms{kRequestBounds};  // from the request's arrival to the end
  Histogram mean_token_ms{kTokenBounds};
  std::uint64_t policy_steps = 0;   // actions of networks, one for each row of observations
  std::uint64_t ended_whole = 0;    // choices: by the model, a stop rule or a call
  std::uint64_t ended_cut = 0;      // by max_tokens
  std::uint64_t ended_early = 0;    // generations that were aborted or failed
  std::int64_t longest_tokens = 0;  // of a prompt and an answer to it
};

}  // namespace braid::net
