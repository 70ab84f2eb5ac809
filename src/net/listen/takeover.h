// A running server's listening sockets pass to its successor: both know the path of a Unix socket, on which the running one listens.
// The successor connects, gets every socket (SCM_RIGHTS), gets ready, accepts, and says so; then the other accepts no more. All the time
// the sockets listen, so nobody is refused. Only processes of the same user are heard. The running one holds its end of the connection
// until it has ended, so that the other knows when what must not have two users is free.
#pragma once

#include "braid/result.h"
#include "net/listen/listening_socket.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace braid::net {

// Sockets that a server can pass on beside so many locks: the system takes 253 files in one message, and one is the control socket.
constexpr std::size_t most_passed_sockets(std::size_t locks) { return 252 - std::min<std::size_t>(locks, 252); }

// What passes from one server to the next.
struct Estate {
  std::vector<ListeningSocket> sockets;
  std::vector<FileDescriptor> disk_locks;  // of the folders of the disk tier
  std::uint64_t untouched = 0;             // bytes of memory that the one before will still take, though they are free now
};

// The server whose place is to be taken.
class Predecessor {
 public:
  // Waits until it is ready to be followed, at most a minute. Nothing where nobody listens; kIo when it cannot be understood.
  static Result<std::optional<Predecessor>> find(const std::string& path);

  std::vector<ListeningSocket> take_sockets() { return std::move(estate_.sockets); }
  std::vector<FileDescriptor> take_disk_locks() { return std::move(estate_.disk_locks); }
  std::uint64_t untouched() const { return estate_.untouched; }
  // What of it has not been taken since, as far as its process can be seen from here. Any thread.
  std::uint64_t untouched_now() const;
  ListeningSocket take_control() { return std::move(control_); }  // of `path`

  // Once, when the sockets are served here; without it, the predecessor goes on. What it returns becomes readable when the predecessor has
  // closed what it used, or is gone.
  FileDescriptor dismiss();

 private:
  FileDescriptor connection_;
  ListeningSocket control_;
  Estate estate_;
  pid_t process_ = 0;           // that passed it on; 0: not known
  std::uint64_t resident_ = 0;  // bytes of it then
};

// Where a successor may announce itself. Loop only; its loop shares it until it has ended. After a succession, its destruction tells the
// successor that nothing of the estate is used here any more.
class Succession : public std::enable_shared_from_this<Succession> {
 public:
  // `estate` gives copies of what is passed on; `on_taken` is called once, when a successor serves the sockets.
  Succession(boost::asio::io_context& loop, ListeningSocket control, std::function<Estate()> estate, std::function<void()> on_taken);

  void start();
  void stop();  // waits for nobody any more; removes the path unless a successor has it

  bool has_successor() const { return successor_.has_value(); }  // it holds the sockets, and serves them or is getting ready to

 private:
  static boost::asio::awaitable<void> await_successor(std::shared_ptr<Succession> self);
  void stop_here();
  boost::asio::awaitable<bool> introduce();

  boost::asio::io_context& loop_;
  std::string path_;
  std::function<Estate()> estate_;
  std::function<void()> on_taken_;
  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  std::optional<boost::asio::generic::stream_protocol::socket> successor_;
};

}  // namespace braid::net
