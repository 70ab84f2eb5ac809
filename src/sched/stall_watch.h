// Looks after sequences whose clients read too slowly.
#pragma once

#include "sched/options.h"
#include "sched/roster.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace braid::sched {

// First they lose their blocks, then their sequence. Loop only; its timer runs only while somebody is stalled.
class StallWatch {
 public:
  // `drop` ends a sequence for the reason given, and may destroy it. `tended` is called when it has been looked after them: what came free
  // may be what another one waits for.
  StallWatch(boost::asio::io_context& loop, const SchedulerOptions& options, Roster& roster,
             std::function<void(Sequence&, const std::string& reason)> drop, std::function<void()> tended);

  // Somebody may have stalled.
  void look();
  void stop() { timer_.cancel(); }

 private:
  void await(std::chrono::steady_clock::time_point deadline);
  void tend() noexcept;

  std::chrono::milliseconds park_after_;
  std::chrono::milliseconds drop_after_;
  Roster& roster_;
  std::function<void(Sequence&, const std::string&)> drop_;
  std::function<void()> tended_;
  boost::asio::steady_timer timer_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // what a timer that has run out asks for
  bool is_waiting_ = false;
  std::uint64_t seen_ = 0;  // Roster::stalls() at the last look
};

}  // namespace braid::sched
