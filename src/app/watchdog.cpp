#include "app/watchdog.h"

#include <utility>

namespace braid::app {

Watchdog::Watchdog(boost::asio::io_context& loop, const ServiceManager& manager, const Bounds& bounds, Hooks hooks)
    : manager_(manager), bounds_(bounds), hooks_(std::move(hooks)), timer_(loop) {}

void Watchdog::arm() {
  if (is_armed_ || is_stopped_) return;
  is_armed_ = true;
  timer_.expires_after(hooks_.is_busy() ? bounds_.period : manager_.watchdog_interval().value_or(bounds_.period));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    is_armed_ = false;
    check();
  });
}

void Watchdog::stop() {
  is_stopped_ = true;
  timer_.cancel();
}

void Watchdog::check() {
  const Seconds age = hooks_.step_age();
  if (bounds_.hung.count() > 0 && age > bounds_.hung) hooks_.on_hung(age);
  const bool is_late = bounds_.late.count() > 0 && age > bounds_.late;
  if (std::exchange(is_late_, is_late) != is_late) is_late ? hooks_.on_late(age) : hooks_.on_recovered();
  const auto now = std::chrono::steady_clock::now();
  if (const auto interval = manager_.watchdog_interval(); interval && !is_late && now - told_ >= *interval) {
    manager_.notify("WATCHDOG=1");
    told_ = now;
  }
  if (hooks_.is_busy() || manager_.watchdog_interval()) arm();
}

}  // namespace braid::app
