#include "app/watchdog.h"

#include <algorithm>
#include <utility>

namespace braid::app {

Watchdog::Watchdog(boost::asio::io_context& loop, const ServiceManager& manager, const Bounds& bounds, Hooks hooks)
    : manager_(manager), bounds_(bounds), hooks_(std::move(hooks)), timer_(loop) {}

void Watchdog::arm() {
  const auto next = next_look();
  if (is_stopped_ || (is_armed_ && timer_.expiry() <= next)) return;
  is_armed_ = true;
  timer_.expires_at(next);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    is_armed_ = false;
    check();
  });
}

std::chrono::steady_clock::time_point Watchdog::next_look() const {
  const auto now = std::chrono::steady_clock::now();
  const auto soon = now + bounds_.period;
  const auto interval = manager_.watchdog_interval();
  if (!interval) return soon;
  const auto feeding = std::max(now, told_ + *interval);
  if (!hooks_.is_busy()) return feeding;
  return is_late_ ? soon : std::min(soon, feeding);
}

void Watchdog::stop() {
  is_stopped_ = true;
  timer_.cancel();
}

// While the process was stopped (SIGSTOP, a frozen container), the clock went on and the step did not.
Watchdog::Seconds Watchdog::awake_step_age(std::chrono::steady_clock::time_point now) {
  const Seconds age = hooks_.step_age();
  const Seconds overslept = now - timer_.expiry();
  const bool is_new = age <= now - std::exchange(looked_, now);  // it began since the last look
  asleep_ = is_new ? std::min(overslept, age) : asleep_ + overslept;
  return age - asleep_;
}

void Watchdog::check() {
  const auto now = std::chrono::steady_clock::now();
  const Seconds age = awake_step_age(now);
  if (bounds_.hung.count() > 0 && age > bounds_.hung) hooks_.on_hung(age);
  const bool is_late = bounds_.late.count() > 0 && age > bounds_.late;
  if (std::exchange(is_late_, is_late) != is_late) is_late ? hooks_.on_late(age) : hooks_.on_recovered();
  if (const auto interval = manager_.watchdog_interval(); interval && !is_late && now - told_ >= *interval) {
    manager_.notify("WATCHDOG=1");
    told_ = now;
  }
  if (hooks_.is_busy() || manager_.watchdog_interval()) arm();
}

}  // namespace braid::app
