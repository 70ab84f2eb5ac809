// Watches the age of the step that runs: a late one makes the server unready, one that hangs ends the process.
#pragma once

#include "app/service_manager.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

namespace braid::app {

// Loop only. Looks once a second while steps are out, and never while the engine is idle, unless a service manager wants to be told that
// the server lives: it is, while no step is late.
class Watchdog {
 public:
  using Seconds = std::chrono::duration<double>;

  struct Bounds {
    std::chrono::milliseconds late{60'000};   // 0: never
    std::chrono::milliseconds hung{600'000};  // 0: never
    std::chrono::milliseconds period{1'000};
  };
  // What it sees, and what it calls. `step_age` is 0 between steps.
  struct Hooks {
    std::function<bool()> is_busy;
    std::function<Seconds()> step_age;
    std::function<void(Seconds)> on_late;  // once for each late step
    std::function<void()> on_recovered;
    std::function<void(Seconds)> on_hung;
  };

  Watchdog(boost::asio::io_context& loop, const ServiceManager& manager, const Bounds& bounds, Hooks hooks);

  // The engine has work, or the service manager may want news.
  void arm();
  void stop();

 private:
  std::chrono::steady_clock::time_point next_look() const;
  void check();
  Seconds awake_step_age(std::chrono::steady_clock::time_point now);

  const ServiceManager& manager_;
  const Bounds bounds_;
  const Hooks hooks_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point told_;  // when the service manager was
  std::chrono::steady_clock::time_point looked_;
  Seconds asleep_{0};  // of the step's age, this process was stopped
  bool is_armed_ = false;
  bool is_stopped_ = false;
  bool is_late_ = false;
};

}  // namespace braid::app
