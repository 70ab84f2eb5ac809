#include "net/listen/listener.h"

#include "net/listen/trusted_peer.h"
#include "net/log/failure.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <climits>
#include <exception>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using asio::generic::stream_protocol;
using boost::system::error_code;

constexpr std::chrono::milliseconds kRetryAccept{100};  // when files or memory have run out

constexpr auto log_failed_connection = log_failure("a connection");

int seconds(std::chrono::milliseconds time) {
  return static_cast<int>(std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(time).count(), 1, 32'767));
}

// What accepted connections inherit from their listener on Linux: nothing has to be set for each.
void set_for_connections(int listener, const ServerOptions& options) {
  const auto set = [listener](int level, int name, int value) { ::setsockopt(listener, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::min<std::int64_t>(options.tcp_user_timeout.count(), INT_MAX)));
  set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.client_buffer_bytes));  // else the system lets it grow to megabytes
  set(SOL_SOCKET, SO_KEEPALIVE, options.tcp_keepalive.count() > 0 ? 1 : 0);
  if (options.tcp_keepalive.count() == 0) return;
  set(IPPROTO_TCP, TCP_KEEPIDLE, seconds(options.tcp_keepalive));
  set(IPPROTO_TCP, TCP_KEEPINTVL, seconds(options.tcp_keepalive));
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

stream_protocol protocol_of(int file) {
  int family = 0;
  socklen_t size = sizeof family;
  ::getsockopt(file, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return {family, 0};
}

}  // namespace

Listener::Listener(asio::io_context& loop, std::shared_ptr<Service> service, Serve serve, ListeningSocket socket, Entrance entrance)
    : loop_(loop), service_(std::move(service)), serve_(std::move(serve)), entrance_(std::move(entrance)), name_(std::move(socket.name)),
      port_(socket.port), unix_path_(std::move(socket.unix_path)), unlinks_(socket.unlinks),
      acceptor_(loop, protocol_of(socket.file.get()), socket.file.get()) {
  socket.file.release();
  if (unix_path_.empty()) set_for_connections(acceptor_.native_handle(), service_->options);
}

void Listener::start() { asio::co_spawn(loop_, accept_clients(shared_from_this()), log_failed_connection); }

void Listener::stop() {
  if (acceptor_.is_open() && unlinks_) ::unlink(unix_path_.c_str());
  stop_here();
}

// Not close(): Asio leaves it to the system to forget a closed file, which it does not while another process has the socket.
void Listener::stop_here() {
  if (!acceptor_.is_open()) return;
  error_code ignored;
  const FileDescriptor closed(acceptor_.release(ignored));
}

ListeningSocket Listener::duplicate() {
  const int file = ::fcntl(acceptor_.native_handle(), F_DUPFD_CLOEXEC, 0);
  return {FileDescriptor(file), name_, port_, unix_path_, unlinks_};
}

// One connection that cannot be served for want of memory is closed; the next one may find some.
void Listener::take(http::Socket socket) {
  try {
    welcome(std::move(socket));
  } catch (const std::exception&) {
    log_failed_connection(std::current_exception());
  }
}

void Listener::welcome(http::Socket socket) {
  if (!unix_path_.empty() && !is_trusted_peer(socket.native_handle(), service_->options.unix_users)) {
    spdlog::warn("{}: a process of another user was turned away", name_);
    return;
  }
  std::unique_ptr<http::TlsStream> tls;
  if (entrance_.tls != nullptr && (tls = entrance_.tls->accept(socket.native_handle())) == nullptr) return;
  auto connection = std::make_shared<http::Connection>(std::move(socket), service_->sends, std::move(tls), entrance_.capability);
  asio::co_spawn(loop_, serve_(std::move(connection)), log_failed_connection);
}

asio::awaitable<void> Listener::accept_clients(std::shared_ptr<Listener> self) {
  Acceptor& acceptor = self->acceptor_;
  bool exhausted = false;  // told once, not at each attempt
  while (acceptor.is_open()) {
    error_code failure;
    http::Socket socket(self->loop_);
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, failure));
    if (!failure) {
      if (std::exchange(exhausted, false)) spdlog::info("{}: connections are accepted again", self->name_);
      self->take(std::move(socket));
    } else if (acceptor.is_open() && failure != asio::error::connection_aborted) {
      if (!std::exchange(exhausted, true))
        spdlog::warn("{}: cannot accept a connection: {}; {} are open, and new ones wait until some have ended", self->name_,
                     failure.message(), self->service_->connections->size());
      asio::steady_timer pause(self->loop_, kRetryAccept);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
    }
  }
}

}  // namespace braid::net
