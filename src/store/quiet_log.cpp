#include "store/quiet_log.h"

#include <spdlog/spdlog.h>

namespace braid::store {

void QuietLog::warn(const std::string& line) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) {
    ++left_out_;
    return;
  }
  if (left_out_ > 0) {
    spdlog::warn("{} ({} more such lines were left out)", line, left_out_);
  } else {
    spdlog::warn("{}", line);
  }
  left_out_ = 0;
  next_ = now + std::chrono::seconds(10);
}

}  // namespace braid::store
