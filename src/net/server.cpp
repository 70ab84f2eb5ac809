#include <net/http/listener.h>
#include <net/server.h>
#include <net/service.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

namespace braid::net {

Server::Server(boost::asio::io_context& loop, ServerOptions options, const ServiceStatus& status)
    : service_(std::make_shared<Service>(loop, std::move(options), status)),
      listener_(std::make_shared<Listener>(loop, service_)) {}

Server::~Server() { stop_accepting(); }

Result<std::uint16_t> Server::start() { return listener_->start(); }

void Server::replace_api_keys(std::vector<access::ApiKey> keys) {
  service_->keys.replace(std::move(keys), std::chrono::steady_clock::now());
}

void Server::stop_accepting() { listener_->stop(); }

void Server::close_idle() {
  service_->closing = true;
  service_->connections->close_idle();
}

void Server::abort_connections(std::string_view reason) {
  if (open_connections() > 0) spdlog::warn("{} connections are closed: {}", open_connections(), reason);
  service_->closing = true;
  service_->connections->close_all();
}

boost::asio::awaitable<void> Server::finished() { return service_->connections->empty(); }

std::size_t Server::open_connections() const { return service_->connections->size(); }

std::size_t Server::open_streams() const { return service_->counters.open_streams; }

}  // namespace braid::net
