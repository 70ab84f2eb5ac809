// The time of day.
#pragma once

#include <chrono>
#include <cstdint>

namespace braid::app {

inline std::int64_t now_in_unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace braid::app
