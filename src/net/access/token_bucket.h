// How much of something may be taken in a minute: a bucket that holds one minute's worth and fills evenly.
#pragma once

#include <chrono>
#include <cstdint>

namespace braid::net::access {

using Clock = std::chrono::steady_clock;

// Times never go back. A limit of 0 is no limit: such a bucket is always full.
class TokenBucket {
 public:
  TokenBucket(std::uint32_t per_minute, Clock::time_point now);

  bool limited() const { return per_minute_ > 0; }
  std::uint32_t per_minute() const { return per_minute_; }

  // What has been taken in excess stays so, what is left stays at most a minute's worth.
  void set_limit(std::uint32_t per_minute, Clock::time_point now);

  // How long until `amount`, at most a minute's worth, is there; 0 if it is.
  std::chrono::milliseconds wait_for(double amount, Clock::time_point now);

  // No clock: for each generated token. The bucket may owe afterwards. Negative amounts give back.
  void take(double amount) { level_ -= amount; }

  std::uint32_t remaining(Clock::time_point now);
  std::chrono::milliseconds until_full(Clock::time_point now) { return wait_for(per_minute_, now); }

 private:
  void fill(Clock::time_point now);

  std::uint32_t per_minute_;
  double level_;
  Clock::time_point filled_at_;
};

}  // namespace braid::net::access
