// A running server's listening sockets pass to its successor: both know the path of a Unix socket, on which the running one listens.
// The successor connects, gets every socket (SCM_RIGHTS), gets ready, accepts, and says so; then the other accepts no more. All the time
// the sockets listen, so nobody is refused. Only processes of the same user are heard.
#pragma once

#include <braid/result.h>
#include <net/listen/listening_socket.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::net {

// The server whose place is to be taken.
class Predecessor {
 public:
  // Waits until it is ready to be followed, at most a minute. Nothing where nobody listens; kIo when it cannot be understood.
  static Result<std::optional<Predecessor>> find(const std::string& path);

  std::vector<ListeningSocket> take_sockets() { return std::move(sockets_); }
  ListeningSocket take_control() { return std::move(control_); }  // of `path`

  void dismiss();  // once, when the sockets are served here; without it, the predecessor goes on

 private:
  FileDescriptor connection_;
  ListeningSocket control_;
  std::vector<ListeningSocket> sockets_;
};

// Where a successor may announce itself. Loop only; its loop shares it until it has ended.
class Succession : public std::enable_shared_from_this<Succession> {
 public:
  // `sockets` gives copies of those to pass on; `on_taken` is called once, when a successor serves them.
  Succession(boost::asio::io_context& loop, ListeningSocket control, std::function<std::vector<ListeningSocket>()> sockets,
             std::function<void()> on_taken);

  void start();
  void stop();  // no successor will come; removes the path unless one has come

 private:
  static boost::asio::awaitable<void> await_successor(std::shared_ptr<Succession> self);
  void stop_here();
  boost::asio::awaitable<bool> introduce(boost::asio::generic::stream_protocol::socket& successor);

  boost::asio::io_context& loop_;
  std::string path_;
  std::function<std::vector<ListeningSocket>()> sockets_;
  std::function<void()> on_taken_;
  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
};

}  // namespace braid::net
