// The times by which one request has to get on.
#pragma once

#include "net/generation/failure.h"
#include "net/http/connection.h"
#include "net/service/server_options.h"

#include <optional>

namespace braid::net {

enum class Progress { kQueued, kStarted, kAnswering };

class Deadlines {
 public:
  Deadlines(const WaitLimits& limits, http::Clock::time_point start);

  // The next time at which overdue() may have something to say; max() if there is none.
  http::Clock::time_point next(Progress progress) const;

  // What ends the request now, if anything does: kOverloaded for the queue, kTimeout otherwise.
  std::optional<Failure> overdue(http::Clock::time_point now, Progress progress) const;

 private:
  WaitLimits limits_;
  http::Clock::time_point queue_ = http::Clock::time_point::max();
  http::Clock::time_point first_token_ = http::Clock::time_point::max();
  http::Clock::time_point total_ = http::Clock::time_point::max();
};

}  // namespace braid::net
