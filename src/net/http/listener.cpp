#include <fmt/format.h>
#include <net/http/listener.h>
#include <net/http/session.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace braid::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kRetryAccept{100};  // when files or memory have run out

// An exception in a session is a bug or exhaustion: it costs that connection and nothing else.
void log_failure(std::exception_ptr failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    spdlog::error("a connection failed: {}", error.what());
  }
}

Result<tcp::endpoint> resolve_address(asio::io_context& loop, const ServerOptions& options) {
  error_code failure;
  tcp::resolver resolver(loop);
  const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, failure);
  if (failure || found.empty())
    return Error{ErrorCode::kIo, fmt::format("cannot listen on '{}': {}", options.host, failure.message()), ""};
  return found.begin()->endpoint();
}

}  // namespace

Listener::Listener(asio::io_context& loop, std::shared_ptr<Service> service)
    : loop_(loop), service_(std::move(service)), acceptor_(loop) {}

Result<std::uint16_t> Listener::start() {
  const ServerOptions& options = service_->options;
  const Result<tcp::endpoint> endpoint = resolve_address(loop_, options);
  if (!endpoint) return endpoint.error();
  error_code failure;
  acceptor_.open(endpoint->protocol(), failure);
  if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure) acceptor_.bind(*endpoint, failure);
  if (!failure) acceptor_.listen(options.backlog, failure);
  if (failure) {
    return Error{ErrorCode::kIo, fmt::format("cannot listen on {} port {}: {}", options.host, options.port, failure.message()), ""};
  }
  asio::co_spawn(loop_, accept_clients(shared_from_this()), log_failure);
  return acceptor_.local_endpoint().port();
}

void Listener::stop() {
  error_code ignored;
  acceptor_.close(ignored);
}

asio::awaitable<void> Listener::accept_clients(std::shared_ptr<Listener> self) {
  tcp::acceptor& acceptor = self->acceptor_;
  while (acceptor.is_open()) {
    error_code failure;
    tcp::socket socket(self->loop_);
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, failure));
    if (!failure) {
      auto session = http::serve(self->service_, std::make_shared<http::Connection>(std::move(socket)));
      asio::co_spawn(self->loop_, std::move(session), log_failure);
    } else if (acceptor.is_open() && failure != asio::error::connection_aborted) {
      spdlog::warn("cannot accept a connection: {}", failure.message());
      asio::steady_timer pause(self->loop_, kRetryAccept);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
    }
  }
}

}  // namespace braid::net
