// One running server, from the open port to the last closed connection.
#pragma once

#include "app/logging.h"
#include "app/models/data_folder.h"
#include "app/options.h"
#include "app/pid_file.h"
#include "app/service_manager.h"
#include "app/serving/departure.h"
#include "app/serving/engines.h"
#include "app/serving/handover.h"
#include "app/serving/model_loader.h"
#include "app/serving/peer_link.h"
#include "app/watchdog.h"
#include "braid/model_registry.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/listen/listening_socket.h"
#include "net/server/server.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::app {

// Everything belongs to the loop.
class Serving {
 public:
  // All outlive it.
  Serving(boost::asio::io_context& loop, const ServeOptions& options, const Logging& logging);
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
  Result<void> begin_serving();
  void on_loaded(Result<LoadedModels> loaded);
  boost::asio::awaitable<void> become_ready();
  bool announce_ready();
  void look_again();  // for models that have come or gone
  void fail(const Error& error);
  void stop();
  Watchdog::Hooks watchdog_hooks();
  void tell_whether_broken();

  void await_signal();
  void on_signal(int number);
  void end(const std::string& signal);
  void reopen_log(const std::string& signal) const;
  void report_state(const std::string& signal) const;
  Result<net::Reloaded> read_again();  // options, TLS certificate, API keys
  Result<net::Reloaded> read_options_again();
  void reload();  // read_again(), on SIGHUP

  boost::asio::io_context& loop_;
  const ServeOptions& options_;  // of the start
  ServeOptions current_;         // the same, with what has changed since
  const Logging& logging_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<Error> failure_;
  ServiceStatus status_;
  bool is_broken_ = false;  // and status_ says so
  const ServiceManager manager_;
  Watchdog watchdog_;
  Handover handover_;  // its end tells a successor that the disk tier is closed: it goes after the engines
  std::unique_ptr<Engines> engines_;
  std::shared_ptr<ModelRegistry> registry_;  // null: none
  std::optional<ServerNote> note_;           // by which commands find this server
  std::optional<PidFile> pid_file_;
  std::optional<net::Server> server_;  // after the engines: it goes first
  std::optional<Departure> departure_;
  boost::asio::signal_set signals_;
  bool signalled_ = false;  // to end
  bool stopped_ = false;
  ModelLoader loader_;
  std::shared_ptr<net::Changes> changes_;  // null: there are no servers beside this one
  std::string peer_key_;
  std::optional<ChangeRecord> change_record_;  // until this one serves
  std::unique_ptr<PeerLink> peers_;            // once this one serves
};

}  // namespace braid::app
