// Shows how far a load is: a bar on a terminal, now and then a log line otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace braid::app {

// Used by one thread. Writes to stderr, so that stdout stays for what the program says.
class LoadProgress {
 public:
  LoadProgress();
  ~LoadProgress();
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  // `what` in one or two words; done and total in bytes.
  void show(std::string_view what, std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool line_open_ = false;  // the terminal's cursor stands behind a bar
  Clock::time_point next_;  // not before
};

}  // namespace braid::app
