#include "net/access/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace braid::net::access {

TokenBucket::TokenBucket(std::uint32_t per_minute, Clock::time_point now) : per_minute_(per_minute), level_(per_minute), filled_at_(now) {}

void TokenBucket::set_limit(std::uint32_t per_minute, Clock::time_point now) {
  fill(now);
  level_ = limited() ? std::min<double>(level_, per_minute) : per_minute;
  per_minute_ = per_minute;
}

std::chrono::milliseconds TokenBucket::wait_for(double amount, Clock::time_point now) {
  if (!limited()) return std::chrono::milliseconds(0);
  fill(now);
  const double missing = std::max(0.0, amount - level_);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(missing * 60'000.0 / per_minute_)));
}

std::uint32_t TokenBucket::remaining(Clock::time_point now) {
  fill(now);
  return static_cast<std::uint32_t>(std::max(0.0, level_));
}

void TokenBucket::fill(Clock::time_point now) {
  const std::chrono::duration<double> elapsed = now - filled_at_;
  filled_at_ = now;
  level_ = std::min<double>(per_minute_, level_ + elapsed.count() * per_minute_ / 60.0);
}

}  // namespace braid::net::access
