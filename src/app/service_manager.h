// What systemd is told, by the datagrams of sd_notify(3).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace braid::app {

// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID when it is made. Without a service manager it does nothing.
class ServiceManager {
 public:
  ServiceManager();

  // "READY=1", "STOPPING=1", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=..."; several with a line's end between. What cannot be sent is lost. Any
  // thread.
  void notify(std::string_view state) const;

  // How often it wants "WATCHDOG=1": twice in the time that it allows. nullopt: it does not watch.
  std::optional<std::chrono::microseconds> watchdog_interval() const { return interval_; }

 private:
  std::string socket_;  // empty: none; a leading '@' stands for the abstract namespace
  std::optional<std::chrono::microseconds> interval_;
};

}  // namespace braid::app
