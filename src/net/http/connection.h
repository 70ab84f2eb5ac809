// One client's socket: buffered reading, writing by one coroutine at a time, deadlines, and notice of a client that goes away.
#pragma once

#include "net/http/capability.h"
#include "net/http/send_batch.h"
#include "net/http/tls.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace braid::net::http {

using Socket = boost::asio::generic::stream_protocol::socket;  // of any family
using Clock = std::chrono::steady_clock;
using AutoUnlinkHook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

// Loop only. Its session's coroutine owns it; the watcher's handler shares that until it has run.
class Connection final : public AutoUnlinkHook, public std::enable_shared_from_this<Connection>, SendBatch::Sender {
 public:
  // Without `tls` it is plain; with a `capability` each request has to show it.
  Connection(Socket socket, std::shared_ptr<SendBatch> batch, std::unique_ptr<TlsStream> tls = nullptr,
             std::shared_ptr<const Capability> capability = nullptr);
  ~Connection();

  bool accepts(std::string_view token) const { return capability_ == nullptr || capability_->matches(token); }

  const std::string& peer() const { return peer_; }  // address and port, for logs

  // Where the peer is: at the other end of a Unix socket, at a loopback address, or anywhere.
  enum class Place { kUnixSocket, kLoopback, kElsewhere };
  Place place() const { return place_; }

  std::uint64_t bytes_written() const { return bytes_written_; }
  std::size_t backlog_bytes() const { return backlog_bytes_; }  // what write() has and the socket does not take

  std::string_view input() const;
  void consume(std::size_t bytes) { input_.consume(bytes); }

  // False when the client has closed, close() was called, or `timeout` passed, after which an answer can still be written.
  boost::asio::awaitable<bool> read_more(std::chrono::milliseconds timeout);

  // Sends all of `bytes`, which outlive the wait. False when the client is gone or took nothing for `timeout`.
  boost::asio::awaitable<bool> write(std::string_view bytes, std::chrono::milliseconds timeout);

  // Sends a copy of `bytes` without waiting, together with what other connections send in this turn of the loop. What the socket does not
  // take stays here, is_behind() until catch_up(), and `interrupt` of begin_watch() is called.
  void send_soon(std::string_view bytes);
  void send_now();  // what send_soon() was given
  bool is_behind() const { return !behind_.empty(); }
  boost::asio::awaitable<bool> catch_up(std::chrono::milliseconds timeout);  // as write()

  // Ends the answer to a request that was not read to its end: lets the client read it before the socket closes, which it does when
  // nothing has come for `timeout`, after `most`, or when too much has come.
  boost::asio::awaitable<void> linger(std::chrono::milliseconds timeout, std::chrono::milliseconds most);

  // While a request runs: reads ahead, so that an end of the client's stream is seen (it counts as gone, as nginx treats it);
  // what it reads, up to `max_read_ahead` bytes, is input of the next request: beyond it, an end is not seen any more. `interrupt` is
  // called when the client goes, a ping is due or the time of interrupt_at() has come. Under TLS it is not read while it takes nothing;
  // an end behind bytes that wait is seen within a second then.
  void begin_watch(std::size_t max_read_ahead, std::function<void()> interrupt);
  void end_watch();

  void begin_pings(std::chrono::milliseconds interval);
  void end_pings() { ping_at_ = Clock::time_point::max(); }
  bool take_due_ping() { return std::exchange(ping_due_, false); }
  void interrupt_at(Clock::time_point time) { interrupt_at_ = time; }  // once; max(): never

  bool gone() const { return gone_; }            // nothing can be sent any more
  bool timed_out() const { return timed_out_; }  // the last wait ended by its deadline

  // For bytes of a request: of the next one, or of the first or one that has begun.
  enum class Awaits { kNothing, kNext, kFirstOrRest };
  Awaits awaits() const { return awaits_; }
  void set_awaits(Awaits awaits) { awaits_ = awaits; }
  bool has_unread() const;  // bytes that no read has taken yet

  void close();
  bool closed() const { return closed_; }  // by this side

  void tick(Clock::time_point now);  // by ConnectionSet

 private:
  boost::asio::awaitable<std::size_t> read_decrypted(boost::asio::mutable_buffer room, boost::system::error_code& failure);
  std::size_t read_now(boost::asio::mutable_buffer room, boost::system::error_code& failure);
  Socket::wait_type wanted(Socket::wait_type plain) const;
  std::string_view write_some(std::string_view bytes);
  void on_sent(std::size_t taken, std::string_view rest, int error) noexcept override;
  void wait_for_input();
  void read_ahead();
  void read_ahead_later();
  void lose();
  bool has_ended();

  // What writing needs comes first.
  Socket socket_;
  std::shared_ptr<SendBatch> batch_;
  bool is_in_batch_ = false;
  std::string behind_;  // what a socket did not take of send_soon()
  std::unique_ptr<TlsStream> tls_;
  std::uint64_t bytes_written_ = 0;
  std::uint32_t watch_ = 0;  // odd while watching; tells a late handler that its watch is over
  bool ping_due_ = false;
  bool reads_later_ = false;  // the watcher, when write() is done
  bool gone_ = false;
  bool closed_ = false;
  bool timed_out_ = false;
  Awaits awaits_ = Awaits::kNothing;
  std::size_t backlog_bytes_ = 0;
  std::shared_ptr<const Capability> capability_;
  std::string peer_;
  Place place_ = Place::kElsewhere;
  boost::beast::flat_buffer input_;
  std::function<void()> interrupt_;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point ping_at_ = Clock::time_point::max();
  Clock::time_point interrupt_at_ = Clock::time_point::max();
  std::chrono::milliseconds ping_interval_{0};
  std::size_t max_read_ahead_ = 0;
};

}  // namespace braid::net::http
