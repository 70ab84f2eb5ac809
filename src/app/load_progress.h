// Tells how far a load is: a bar on a terminal, now and then a log line otherwise; and the service manager, if there is one.
#pragma once

#include "app/service_manager.h"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace braid::app {

// Used by one thread. Writes to stderr, so that stdout stays for what the program says. While it is told of progress, the service
// manager's time limit for the start is put off.
class LoadProgress {
 public:
  explicit LoadProgress(const ServiceManager* manager = nullptr);  // which outlives it
  ~LoadProgress();
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  // `what` in one or two words; done and total in bytes.
  void show(std::string_view what, std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  void tell_manager(std::string_view what, double share, Clock::time_point now);

  const ServiceManager* manager_;
  Clock::time_point tell_next_;  // not before
  bool terminal_;
  bool line_open_ = false;  // the terminal's cursor stands behind a bar
  Clock::time_point next_;  // not before
};

}  // namespace braid::app
