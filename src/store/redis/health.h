// Whether a Redis is asked at all.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace braid::store {

// After a failure nobody asks for a while, doubled with each failure that follows, so that one which is gone costs next to nothing.
// Any thread.
class RedisHealth {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLongestPause{30};

  explicit RedisHealth(std::chrono::seconds first_pause) : first_pause_(first_pause.count()) {}

  bool is_down(Clock::time_point now = Clock::now()) const { return now.time_since_epoch().count() < until_.load(); }
  void fails(Clock::time_point now = Clock::now()) {
    if (is_down(now)) return;  // what others notice meanwhile is the same failure
    const std::int64_t pause = std::max(first_pause_, std::min<std::int64_t>(2 * pause_.load(), kLongestPause.count()));
    pause_ = pause;
    until_ = (now + std::chrono::seconds(pause)).time_since_epoch().count();
  }
  void works() { pause_ = 0; }

 private:
  const std::int64_t first_pause_;
  std::atomic<Clock::rep> until_{Clock::time_point::min().time_since_epoch().count()};
  std::atomic<std::int64_t> pause_{0};  // seconds; 0: the last command succeeded
};

}  // namespace braid::store
