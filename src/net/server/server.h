// The HTTP server. The composition root owns it; everything runs on the loop's thread except long tokenisations (one worker).
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/listen/listening_socket.h"
#include "net/service/server_options.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::net {

namespace http {
class TlsIdentity;
}
struct Service;
struct Dialects;
class Listener;

// Shutdown, as the composition root does it: set status.state to kDraining (/readyz and new generations answer 503, probes still
// get through), let the engine end its sequences, then stop_accepting(), close_idle(), and `co_await finished()` under a
// deadline, after which abort_connections() and another finished() end what is left. Destroy the server before the engine.
class Server {
 public:
  // `loop` and `status` outlive the server; `status` is read at each request.
  Server(boost::asio::io_context& loop, ServerOptions options, const ServiceStatus& status);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds, listens and begins to accept; from the sockets that were `given` instead, if any. Returns the port of the first TCP address,
  // which differs from the option when that was 0. kIo with the address and the system's reason otherwise.
  Result<std::uint16_t> start(std::vector<ListeningSocket> given = {});

  // As URLs: http://127.0.0.1:8000, https://[::1]:8000, unix:/run/braid.sock.
  std::vector<std::string> addresses() const;

  Result<void> reload_tls();  // reads certificate and key again, if there are any

  // In place of those of before: requests that run go on, also those whose key is gone.
  void replace_api_keys(std::vector<access::ApiKey> keys);
  void limit_anonymous(const access::Limits& limits);  // of all clients together, on a server without keys

  // What others beside this one have made it change, and it has lost, is changed again (options.changes).
  void catch_up();

  void stop_accepting();

  // For another process that goes on with the sockets: copies of them, and the end of accepting here.
  std::vector<ListeningSocket> duplicate_sockets();
  void leave_sockets();

  // From now on each answer says that its connection closes. One between two requests stays, since its client may be sending the next.
  void close_answered();

  // The same, and closes connections between two requests.
  void close_idle();

  // The same, and closes those that have not sent a whole request.
  void close_waiting();

  // Drops every connection; running requests are cancelled. `reason` goes to the log.
  void abort_connections(std::string_view reason);

  // Returns when no connection is open. One caller at a time.
  boost::asio::awaitable<void> finished();

  std::size_t open_connections() const;
  std::size_t running_requests() const;  // that have not been answered to their end
  std::size_t open_streams() const;      // accepted streamed answers that have not ended

 private:
  Result<std::vector<ListeningSocket>> open_sockets() const;
  Result<void> add_listeners(std::vector<ListeningSocket> sockets);

  boost::asio::io_context& loop_;
  std::shared_ptr<Service> service_;
  std::shared_ptr<Dialects> dialects_;
  std::unique_ptr<http::TlsIdentity> tls_;  // null: plain HTTP
  std::vector<std::shared_ptr<Listener>> listeners_;
};

}  // namespace braid::net
