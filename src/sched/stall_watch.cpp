#include "sched/stall_watch.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::sched {

using Clock = std::chrono::steady_clock;

StallWatch::StallWatch(boost::asio::io_context& loop, const SchedulerOptions& options, Roster& roster,
                       std::function<void(Sequence&, const std::string&)> drop, std::function<void()> tended)
    : park_after_(options.stall_park), drop_after_(options.stall_drop), roster_(roster), drop_(std::move(drop)), tended_(std::move(tended)),
      timer_(loop) {}

// Whoever waits for somebody's end waits for longer than this one may keep its blocks.
void StallWatch::look() {
  if (roster_.stalled().empty() || roster_.stalls() == seen_) return;
  seen_ = roster_.stalls();
  const auto park_at = Clock::now() + park_after_;
  if (!is_waiting_ || park_at < timer_.expiry()) await(park_at);
}

void StallWatch::await(Clock::time_point deadline) {
  is_waiting_ = true;
  timer_.expires_at(deadline);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired()) return;
    is_waiting_ = false;
    tend();
  });
}

void StallWatch::tend() noexcept {
  const auto now = Clock::now();
  auto next = Clock::time_point::max();
  for (auto at = roster_.stalled().begin(); at != roster_.stalled().end();) {
    Sequence& sequence = (at++)->second;  // drop_() may destroy it
    const auto park_at = sequence.stalled_since + park_after_;
    const auto drop_at = sequence.stalled_since + drop_after_;
    if (now >= drop_at) {
      drop_(sequence, fmt::format("the client has read nothing for {:.1f} s while its stream was full",
                                  std::chrono::duration<double>(now - sequence.stalled_since).count()));
      continue;
    }
    if (sequence.phase == SequencePhase::kStalled && now >= park_at) roster_.park(sequence);
    next = std::min(next, sequence.phase == SequencePhase::kStalled ? park_at : drop_at);
  }
  if (!roster_.stalled().empty()) await(next);
  tended_();
}

}  // namespace braid::sched
