// Warnings of a disk that fails again and again, without flooding the log.
#pragma once

#include <chrono>
#include <string>

namespace braid::store {

// At most one line in ten seconds; the next one tells how many were left out.
class QuietLog {
 public:
  void warn(const std::string& line);

 private:
  std::chrono::steady_clock::time_point next_{};
  unsigned left_out_ = 0;
};

}  // namespace braid::store
