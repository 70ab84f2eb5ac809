#include "net/server/server.h"

#include "net/endpoints/dialects.h"
#include "net/http/tls.h"
#include "net/listen/listener.h"
#include "net/log/failure.h"
#include "net/peers/peers.h"
#include "net/server/session.h"
#include "net/service/service.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::net {

namespace {

// Two sockets of one port, one of them for IPv6, share it only if that one leaves IPv4 alone.
bool shares_port(const TcpAddress& address, const std::vector<TcpAddress>& all) {
  const auto is_v4_twin = [&address](const TcpAddress& other) {
    return other.port == address.port && other.port != 0 && other.host.find(':') == std::string::npos;
  };
  return std::any_of(all.begin(), all.end(), is_v4_twin);
}

std::string token_file(const ServerOptions& options, const std::string& socket) {
  return options.unix_token.empty() ? socket + ".token" : options.unix_token;
}

}  // namespace

Server::Server(boost::asio::io_context& loop, ServerOptions options, const ServiceStatus& status)
    : loop_(loop), service_(std::make_shared<Service>(loop, std::move(options), status)), dialects_(std::make_shared<Dialects>()) {}

Server::~Server() { stop_accepting(); }

Result<std::uint16_t> Server::start(std::vector<ListeningSocket> given) {
  const ServerOptions& options = service_->options;
  if (!options.tls_certificate.empty()) {
    auto tls = http::TlsIdentity::load(options.tls_certificate, options.tls_key);
    if (!tls) return tls.error();
    tls_ = std::move(*tls);
  }
  if (given.empty()) {
    Result<std::vector<ListeningSocket>> opened = open_sockets();
    if (!opened) return opened.error();
    given = std::move(*opened);
  }
  std::uint16_t port = 0;
  for (const ListeningSocket& socket : given)
    if (port == 0) port = socket.port;
  if (const Result<void> added = add_listeners(std::move(given)); !added) return added.error();
  for (const auto& listener : listeners_) listener->start();
  return port;
}

void Server::catch_up() { boost::asio::co_spawn(loop_, peers::catch_up(service_), log_failure("repeating changes")); }

void Server::limit_anonymous(const access::Limits& limits) { service_->keys.limit_anonymous(limits, std::chrono::steady_clock::now()); }

void Server::replace_api_keys(std::vector<access::ApiKey> keys) {
  service_->keys.replace(std::move(keys), std::chrono::steady_clock::now());
}

Result<std::vector<ListeningSocket>> Server::open_sockets() const {
  const ServerOptions& options = service_->options;
  std::vector<ListeningSocket> sockets;
  for (const TcpAddress& address : options.listen) {
    Result<ListeningSocket> socket = listen_tcp(address, options.backlog, shares_port(address, options.listen));
    if (!socket) return socket.error();
    sockets.push_back(std::move(*socket));
  }
  if (options.unix_socket.empty()) return sockets;
  Result<ListeningSocket> socket = listen_unix(options.unix_socket, options.unix_mode, options.backlog);
  if (!socket) return socket.error();
  sockets.push_back(std::move(*socket));
  return sockets;
}

Result<void> Server::add_listeners(std::vector<ListeningSocket> sockets) {
  for (ListeningSocket& socket : sockets) {
    Listener::Entrance entrance;
    if (socket.unix_path.empty()) {
      entrance.tls = tls_.get();
    } else if (service_->options.unix_token != kNoToken) {
      if (service_->options.unix_token.empty() && socket.unix_path.starts_with('@'))
        return invalid_argument(
            fmt::format("the abstract socket {} has no folder for its token: name a file with --unix-token, or off", socket.unix_path));
      auto capability = http::load_capability(token_file(service_->options, socket.unix_path));
      if (!capability) return capability.error();
      entrance.capability = std::move(*capability);
    }
    Listener::Serve serve_client = [service = service_, dialects = dialects_](std::shared_ptr<http::Connection> connection) {
      return serve(service, dialects, std::move(connection));
    };
    listeners_.push_back(std::make_shared<Listener>(loop_, service_, std::move(serve_client), std::move(socket), std::move(entrance)));
  }
  return {};
}

std::vector<std::string> Server::addresses() const {
  std::vector<std::string> urls;
  for (const auto& listener : listeners_) {
    const std::string_view scheme = !listener->unix_path().empty() ? "unix:" : tls_ != nullptr ? "https://" : "http://";
    urls.push_back(std::string(scheme) + listener->name());
  }
  return urls;
}

Result<void> Server::reload_tls() { return tls_ != nullptr ? tls_->reload() : Result<void>(); }

void Server::stop_accepting() {
  for (const auto& listener : listeners_) listener->stop();
}

std::vector<ListeningSocket> Server::duplicate_sockets() {
  std::vector<ListeningSocket> sockets;
  for (const auto& listener : listeners_) sockets.push_back(listener->duplicate());
  return sockets;
}

void Server::leave_sockets() {
  for (const auto& listener : listeners_) listener->stop_here();
}

void Server::close_answered() { service_->closing = std::max(service_->closing, Closing::kAnswered); }

void Server::close_idle() {
  service_->closing = std::max(service_->closing, Closing::kIdle);
  service_->connections->close_idle();
}

void Server::close_waiting() {
  service_->closing = Closing::kWaiting;
  service_->connections->close_waiting();
}

void Server::abort_connections(std::string_view reason) {
  if (open_connections() > 0) spdlog::warn("{} connections are closed: {}", open_connections(), reason);
  service_->closing = Closing::kWaiting;
  service_->connections->close_all();
}

boost::asio::awaitable<void> Server::finished() { return service_->connections->empty(); }

std::size_t Server::open_connections() const { return service_->connections->size(); }

std::size_t Server::running_requests() const { return service_->counters.active_requests; }

std::size_t Server::open_streams() const { return service_->counters.open_streams; }

}  // namespace braid::net
