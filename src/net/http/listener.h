// The listening socket and its accept loop.
#pragma once

#include <braid/result.h>
#include <net/service.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>

namespace braid::net {

// Loop only. Its accept loop shares it until it has ended.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(boost::asio::io_context& loop, std::shared_ptr<Service> service);

  Result<std::uint16_t> start();
  void stop();

 private:
  static boost::asio::awaitable<void> accept_clients(std::shared_ptr<Listener> self);

  boost::asio::io_context& loop_;
  std::shared_ptr<Service> service_;
  boost::asio::ip::tcp::acceptor acceptor_;
};

}  // namespace braid::net
