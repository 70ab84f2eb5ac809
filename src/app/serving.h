// One running server, from the open port to the last closed connection.
#pragma once

#include "app/loaded_model.h"
#include "app/logging.h"
#include "app/options.h"
#include "app/service_manager.h"
#include "app/watchdog.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/listen/takeover.h"
#include "net/server/server.h"
#include "sched/compute_strand.h"
#include "sched/scheduler.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace braid::app {

// Everything belongs to the loop but the loading thread, which hands its model over and ends. While it runs, the io_context has work.
class Serving {
 public:
  // All outlive it.
  Serving(boost::asio::io_context& loop, const ServeOptions& options, const Logging& logging);
  ~Serving();
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  // Opens the sockets, or gets them from the server before this one, begins to load and to listen for signals.
  Result<void> start();

  // Why the server ended by itself, after the io_context has stopped.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  // What the program says to whoever started it: a line of standard output.
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    logging_.output()->info(format, std::forward<Args>(args)...);
  }

  net::ServerOptions http_options(std::vector<net::access::ApiKey> keys) const;
  Result<void> find_predecessor();
  Result<void> take_activated();
  Result<void> begin_serving(std::vector<net::ListeningSocket> given);
  void begin_loading();
  void on_loaded(Result<LoadedModel> loaded);
  boost::asio::awaitable<void> become_ready();
  void fail(const Error& error);
  Watchdog::Hooks watchdog_hooks();

  void await_signal();
  void on_signal(int number);
  void end(const std::string& signal);
  void report_state(const std::string& signal) const;
  Result<std::size_t> read_again();  // TLS certificate, API keys
  void reload();                     // the same, on SIGHUP
  bool announce_ready();
  void await_disk(net::FileDescriptor predecessor);
  void take_leave(std::string_view reason);
  boost::asio::awaitable<void> leave();
  boost::asio::awaitable<void> end_after_delay();
  boost::asio::awaitable<void> shut_down(std::chrono::steady_clock::time_point drain_until);
  boost::asio::awaitable<void> drain_engine(std::chrono::steady_clock::time_point until);
  boost::asio::awaitable<void> close_connections(std::chrono::steady_clock::time_point drain_until);
  void say_farewell(std::chrono::steady_clock::time_point until);

  boost::asio::io_context& loop_;
  const ServeOptions& options_;
  const Logging& logging_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<Error> failure_;
  ServiceStatus status_;
  const ServiceManager manager_;
  Watchdog watchdog_;
  std::shared_ptr<net::Succession> succession_;  // its end tells a successor that the disk tier is closed: it goes after the model
  std::optional<LoadedModel> loaded_;
  std::optional<sched::ComputeStrand> strand_;
  std::optional<sched::Scheduler> scheduler_;
  ServedModel served_;
  std::optional<net::Server> server_;                       // after the engine: it goes first
  std::optional<net::Predecessor> predecessor_;             // until this one is ready
  std::optional<net::ListeningSocket> control_;             // for the succession, until it begins
  boost::asio::posix::stream_descriptor predecessors_end_;  // waited for while the disk tier is still the predecessor's
  std::vector<net::ListeningSocket> activated_sockets_;     // of the service manager, until they are served
  bool activated_ = false;                                  // somebody else holds the listening sockets, too
  boost::asio::signal_set signals_;
  boost::asio::steady_timer farewell_;
  boost::asio::steady_timer delay_;  // between SIGTERM and the end of accepting
  bool shutting_down_ = false;
  bool signalled_ = false;  // to end
  bool stopped_ = false;
  std::thread loader_;
};

}  // namespace braid::app
