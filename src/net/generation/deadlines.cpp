#include "net/generation/deadlines.h"

#include <algorithm>
#include <chrono>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::net {
namespace {

using http::Clock;

Clock::time_point after(Clock::time_point start, std::chrono::milliseconds limit) {
  return limit.count() > 0 ? start + limit : Clock::time_point::max();
}

}  // namespace

Deadlines::Deadlines(const WaitLimits& limits, Clock::time_point start)
    : limits_(limits), queue_(after(start, limits.queue)), first_token_(after(start, limits.first_token)),
      total_(after(start, limits.total)) {}

Clock::time_point Deadlines::next(Progress progress) const {
  Clock::time_point time = total_;
  if (progress != Progress::kAnswering) time = std::min(time, first_token_);
  if (progress == Progress::kQueued) time = std::min(time, queue_);
  return time;
}

std::optional<Failure> Deadlines::overdue(Clock::time_point now, Progress progress) const {
  const auto missed = [](RequestEnd end, ErrorCode code, std::string message) {
    return Failure{{code, std::move(message), ""}, end, true};
  };
  if (progress == Progress::kQueued && now >= queue_)
    return missed(RequestEnd::kQueueTimeout, ErrorCode::kOverloaded,
                  fmt::format("the request waited in the queue for more than {}; try again later", limits_.queue));
  if (progress != Progress::kAnswering && now >= first_token_)
    return missed(RequestEnd::kFirstTokenTimeout, ErrorCode::kTimeout,
                  fmt::format("the answer did not begin within {}", limits_.first_token));
  if (now >= total_)
    return missed(RequestEnd::kTotalTimeout, ErrorCode::kTimeout, fmt::format("the answer did not end within {}", limits_.total));
  return std::nullopt;
}

}  // namespace braid::net
