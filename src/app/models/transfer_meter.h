// Shows how far something with models is, and ends it at Ctrl-C.
#pragma once

#include "braid/model_registry.h"

#include <chrono>
#include <csignal>
#include <string>

namespace braid::app {

// One at a time. On a terminal a line that changes, otherwise a line for each step, on stderr; as JSON a line for everything, on stdout.
class TransferMeter {
 public:
  explicit TransferMeter(bool json);
  ~TransferMeter();
  TransferMeter(const TransferMeter&) = delete;
  TransferMeter& operator=(const TransferMeter&) = delete;

  // False after Ctrl-C.
  bool show(const TransferProgress& progress);
  ProgressSink sink() {
    return [this](const TransferProgress& progress) { return show(progress); };
  }

 private:
  using Clock = std::chrono::steady_clock;

  void show_line(const TransferProgress& progress);

  const bool json_;
  const bool terminal_;
  bool line_open_ = false;
  std::string status_;
  std::uint64_t begun_at_ = 0;  // bytes that were here before
  Clock::time_point begun_ = Clock::now();
  struct sigaction before_ {};
};

}  // namespace braid::app
