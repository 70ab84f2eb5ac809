// Where the listening sockets come from, and where they go: a service manager, the server before this one, the server after it.
#pragma once

#include "app/options.h"
#include "braid/result.h"
#include "net/http/file_descriptor.h"
#include "net/listen/listening_socket.h"
#include "net/listen/takeover.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace braid::app {

// Loop only, but for the locks. Destroyed after whatever a successor must not share: it tells him when that is gone.
class Handover {
 public:
  // `options` outlive it.
  Handover(boost::asio::io_context& loop, const ServeOptions& options);

  // The sockets of the service manager, and the server before this one, which goes on serving until serve() was called; waits until it can
  // be followed.
  Result<void> find();

  bool has_predecessor() const { return predecessor_.has_value(); }
  std::vector<net::FileDescriptor> take_disk_locks();
  // Of the predecessor's memory, what it will still take (Predecessor::untouched_now). Any thread until serve() is called.
  std::uint64_t untouched() const { return predecessor_ ? predecessor_->untouched_now() : 0; }

  // What this server is to serve instead of opening its own; empty: nothing has been passed on.
  std::vector<net::ListeningSocket> take_sockets();

  // It does, and can have a successor now. `on_free`, if not empty, is called when the predecessor has let all go.
  void serve(std::function<void()> on_free, std::function<net::Estate()> estate, std::function<void()> on_taken);

  // Somebody else has the listening sockets, too, so that this server must not close them for all.
  bool is_shared() const { return activated_ || (succession_ && succession_->has_successor()); }
  void stop_succession();  // waits for nobody any more
  void stop();

 private:
  Result<void> find_predecessor();
  Result<void> take_activated();
  void await_end(net::FileDescriptor predecessor, std::function<void()> on_free);

  boost::asio::io_context& loop_;
  const ServeOptions& options_;
  std::shared_ptr<net::Succession> succession_;
  std::optional<net::Predecessor> predecessor_;             // until this one is ready
  std::optional<net::ListeningSocket> control_;             // for the succession, until it begins
  boost::asio::posix::stream_descriptor predecessors_end_;  // waited for while something is still the predecessor's
  std::vector<net::ListeningSocket> activated_sockets_;     // of the service manager, until they are served
  bool activated_ = false;
};

}  // namespace braid::app
