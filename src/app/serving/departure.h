// How a server ends: what runs is finished, up to deadlines, and nobody is cut off without a word.
#pragma once

#include "app/options.h"
#include "app/service_manager.h"
#include "app/serving/engines.h"
#include "braid/served_model.h"
#include "net/server/server.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace braid::app {

// Loop only.
class Departure {
 public:
  // All outlive it. `engines` may be null, for ever or until models are loaded; `on_stopped` is called once nothing is left.
  struct Parts {
    boost::asio::io_context& loop;
    const ServeOptions& options;
    const ServiceManager& manager;
    ServiceStatus& status;
    net::Server& server;
    const std::unique_ptr<Engines>& engines;
    std::function<void()> on_stopped;
  };
  explicit Departure(Parts parts);

  bool has_begun() const { return has_begun_; }

  // Another process has the listening sockets: whoever is connected here is answered, and nobody is turned away.
  void leave_sockets(std::string_view reason);
  // Nobody has. At first what runs is finished.
  void end(const std::string& signal);
  // What runs is stopped; after has_begun().
  void end_now(const std::string& signal);

 private:
  boost::asio::awaitable<void> leave();
  boost::asio::awaitable<void> end_after_delay();
  boost::asio::awaitable<void> shut_down(std::chrono::steady_clock::time_point drain_until);
  boost::asio::awaitable<void> drain_engines(std::chrono::steady_clock::time_point until);
  boost::asio::awaitable<void> close_connections(std::chrono::steady_clock::time_point drain_until);
  void say_farewell(std::chrono::steady_clock::time_point until);

  const Parts parts_;
  boost::asio::steady_timer farewell_;
  boost::asio::steady_timer delay_;  // between SIGTERM and the end of accepting
  bool has_begun_ = false;
};

}  // namespace braid::app
