// One listening socket and its accept loop.
#pragma once

#include "braid/result.h"
#include "net/http/capability.h"
#include "net/http/connection.h"
#include "net/http/tls.h"
#include "net/listen/listening_socket.h"
#include "net/service/service.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

namespace braid::net {

// Loop only. Its accept loop shares it until it has ended.
class Listener : public std::enable_shared_from_this<Listener> {
 public:
  // What a connection has to go through before its first request.
  struct Entrance {
    http::TlsIdentity* tls = nullptr;                    // outlives the listener; null: plain
    std::shared_ptr<const http::Capability> capability;  // null: none is asked for
  };

  // Serves one client from its first byte to its close.
  using Serve = std::function<boost::asio::awaitable<void>(std::shared_ptr<http::Connection> connection)>;

  Listener(boost::asio::io_context& loop, std::shared_ptr<Service> service, Serve serve, ListeningSocket socket, Entrance entrance);

  void start();
  void stop();       // and removes the path of a socket that was made here
  void stop_here();  // another process goes on with the socket

  const std::string& name() const { return name_; }
  const std::string& unix_path() const { return unix_path_; }  // empty: TCP
  ListeningSocket duplicate();                                 // for another process

 private:
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

  static boost::asio::awaitable<void> accept_clients(std::shared_ptr<Listener> self);
  void take(http::Socket socket);
  void welcome(http::Socket socket);

  boost::asio::io_context& loop_;
  std::shared_ptr<Service> service_;
  Serve serve_;
  Entrance entrance_;
  std::string name_;
  std::uint16_t port_;
  std::string unix_path_;
  bool unlinks_;
  Acceptor acceptor_;
};

}  // namespace braid::net
