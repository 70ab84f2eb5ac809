#include "net/http/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace braid::net::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kKeptInputBytes = 4096;  // a larger buffer is given back when it is empty
constexpr int kReadsAtOnce = 8;
constexpr std::size_t kMaxLingerBytes = std::size_t{64} << 20;

bool would_block(const error_code& failure) { return failure == asio::error::would_block || failure == asio::error::try_again; }

std::string text_of(const asio::generic::stream_protocol::endpoint& peer) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  const int family = peer.data()->sa_family;
  if (family != AF_INET && family != AF_INET6) return family == AF_UNIX ? "unix" : "";
  ::getnameinfo(peer.data(), static_cast<socklen_t>(peer.size()), host.data(), host.size(), port.data(), port.size(),
                NI_NUMERICHOST | NI_NUMERICSERV);
  return family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data()) : fmt::format("{}:{}", host.data(), port.data());
}

Connection::Place place_of(const asio::generic::stream_protocol::endpoint& peer) {
  const sockaddr* address = peer.data();
  if (address->sa_family == AF_UNIX) return Connection::Place::kUnixSocket;
  bool loopback = false;
  if (address->sa_family == AF_INET) {
    constexpr std::uint32_t kFirstByte = 0xFF000000U;
    loopback = (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) & kFirstByte) == (INADDR_LOOPBACK & kFirstByte);
  } else if (address->sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    constexpr unsigned char kLoopbackByte = 127;  // of an IPv4 address within IPv6
    loopback = IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == kLoopbackByte);
  }
  return loopback ? Connection::Place::kLoopback : Connection::Place::kElsewhere;
}

}  // namespace

Connection::Connection(Socket socket, std::shared_ptr<SendBatch> batch, std::unique_ptr<TlsStream> tls,
                       std::shared_ptr<const Capability> capability)
    : socket_(std::move(socket)), batch_(std::move(batch)), tls_(std::move(tls)), capability_(std::move(capability)) {
  error_code ignored;  // a socket that died meanwhile is noticed by the first read
  socket_.non_blocking(true, ignored);
  const auto peer = socket_.remote_endpoint(ignored);
  peer_ = text_of(peer);
  place_ = place_of(peer);
}

Connection::~Connection() {
  if (is_in_batch_) batch_->forget(*this);
}

std::string_view Connection::input() const {
  const auto data = input_.cdata();
  return {static_cast<const char*>(data.data()), data.size()};
}

asio::awaitable<bool> Connection::read_more(std::chrono::milliseconds timeout) {
  if (gone_) co_return false;
  if (input_.size() == 0 && input_.capacity() > kKeptInputBytes) input_.shrink_to_fit();
  deadline_ = Clock::now() + timeout;
  const auto room = input_.prepare(kReadBytes);
  error_code failure;
  std::size_t count = 0;
  if (tls_ != nullptr) {
    count = co_await read_decrypted(room, failure);
  } else {
    count = co_await socket_.async_read_some(room, asio::redirect_error(asio::use_awaitable, failure));
  }
  deadline_ = Clock::time_point::max();
  input_.commit(count);
  if (failure && !timed_out_) gone_ = true;
  if (!failure) timed_out_ = false;  // the bytes and the deadline came together
  co_return !failure;
}

asio::awaitable<std::size_t> Connection::read_decrypted(asio::mutable_buffer room, error_code& failure) {
  std::size_t count = read_now(room, failure);
  while (would_block(failure)) {
    co_await socket_.async_wait(wanted(Socket::wait_read), asio::redirect_error(asio::use_awaitable, failure));
    if (!failure) count = read_now(room, failure);
  }
  co_return count;
}

std::size_t Connection::read_now(asio::mutable_buffer room, error_code& failure) {
  return tls_ != nullptr ? tls_->read_some(room.data(), room.size(), failure) : socket_.read_some(room, failure);
}

// Either direction of TLS may wait for the other, in its handshake for example.
Socket::wait_type Connection::wanted(Socket::wait_type plain) const {
  if (tls_ == nullptr) return plain;
  return tls_->wants_write() ? Socket::wait_write : Socket::wait_read;
}

// Without waiting, what the socket takes; returns the rest.
std::string_view Connection::write_some(std::string_view bytes) {
  while (!bytes.empty() && !gone_) {
    error_code failure;
    const std::size_t count = tls_ != nullptr ? tls_->write_some(bytes.data(), bytes.size(), failure)
                                              : socket_.write_some(asio::buffer(bytes.data(), bytes.size()), failure);
    bytes.remove_prefix(count);
    bytes_written_ += count;
    if (would_block(failure)) break;
    if (failure) gone_ = true;
  }
  return bytes;
}

asio::awaitable<bool> Connection::write(std::string_view bytes, std::chrono::milliseconds timeout) {
  for (bytes = write_some(bytes); !bytes.empty() && !gone_; bytes = write_some(bytes)) {
    deadline_ = Clock::now() + timeout;
    backlog_bytes_ = bytes.size();
    error_code failure;
    co_await socket_.async_wait(wanted(Socket::wait_write), asio::redirect_error(asio::use_awaitable, failure));
    if (failure) gone_ = true;
    if (!failure) timed_out_ = false;
  }
  deadline_ = Clock::time_point::max();
  backlog_bytes_ = 0;
  if (std::exchange(reads_later_, false) && !gone_) read_ahead();
  co_return !gone_;
}

void Connection::send_soon(std::string_view bytes) {
  send_now();
  if (gone_) return;
  if (is_behind()) {
    behind_ += bytes;
  } else if (tls_ != nullptr) {
    behind_ = write_some(bytes);
  } else {
    batch_->add(*this, socket_.native_handle(), bytes);
    is_in_batch_ = true;
  }
}

void Connection::send_now() {
  if (is_in_batch_) batch_->send();
}

void Connection::on_sent(std::size_t taken, std::string_view rest, int error) noexcept {
  is_in_batch_ = false;
  bytes_written_ += taken;
  if (rest.empty()) return;
  gone_ = gone_ || (error != 0 && !would_block({error, boost::system::system_category()}));
  if (!gone_) behind_ = rest;
  if (interrupt_) interrupt_();
}

asio::awaitable<bool> Connection::catch_up(std::chrono::milliseconds timeout) {
  const std::string behind = std::exchange(behind_, {});
  co_return co_await write(behind, timeout);
}

asio::awaitable<void> Connection::linger(std::chrono::milliseconds timeout, std::chrono::milliseconds most) {
  error_code failure;
  if (tls_ != nullptr) tls_->say_end();
  socket_.shutdown(Socket::shutdown_send, failure);
  const Clock::time_point until = Clock::now() + most;
  std::size_t discarded = 0;
  char buffer[kReadBytes];
  while (!failure && discarded < kMaxLingerBytes && Clock::now() < until) {
    deadline_ = std::min(until, Clock::now() + timeout);
    const auto count = co_await socket_.async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, failure));
    discarded += count;
  }
  close();
}

void Connection::begin_watch(std::size_t max_read_ahead, std::function<void()> interrupt) {
  if (input_.size() == 0) input_.shrink_to_fit();  // while an answer streams, a client has nothing to say
  max_read_ahead_ = max_read_ahead;
  interrupt_ = std::move(interrupt);
  ++watch_;
  read_ahead();
}

void Connection::end_watch() {
  interrupt_ = nullptr;
  reads_later_ = false;
  ++watch_;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::wait_for_input() {
  socket_.async_wait(wanted(Socket::wait_read), [self = shared_from_this(), watch = watch_](const error_code&) {
    if (self->watch_ == watch && !self->gone_) self->read_ahead();
  });
}

void Connection::read_ahead() {
  if (tls_ != nullptr && tls_->is_writing()) {
    if (has_ended()) return lose();
    reads_later_ = true;
    return;
  }
  for (int reads = 0; input_.size() < max_read_ahead_; ++reads) {
    if (reads == kReadsAtOnce) return read_ahead_later();
    error_code failure;
    char bytes[kReadBytes];  // not in the buffer: ten thousand that wait would each hold one
    const std::size_t count = read_now(asio::buffer(bytes), failure);
    if (count > 0) input_.commit(asio::buffer_copy(input_.prepare(count), asio::buffer(bytes, count)));
    if (would_block(failure)) return wait_for_input();
    if (failure) return lose();
  }
}

// For others' sake: some send as fast as this side reads.
void Connection::read_ahead_later() {
  asio::post(socket_.get_executor(), [self = shared_from_this(), watch = watch_] {
    if (self->watch_ == watch && !self->gone_) self->read_ahead();
  });
}

void Connection::lose() {
  gone_ = true;
  error_code ignored;
  socket_.cancel(ignored);  // a blocked write
  if (interrupt_) interrupt_();
}

void Connection::begin_pings(std::chrono::milliseconds interval) {
  ping_interval_ = interval;
  ping_at_ = Clock::now() + interval;
}

void Connection::close() {
  if (tls_ != nullptr && !gone_) tls_->say_end();
  if (std::exchange(is_in_batch_, false)) batch_->forget(*this);  // before another connection gets its descriptor
  gone_ = true;
  closed_ = true;
  error_code ignored;
  socket_.close(ignored);
  if (interrupt_) interrupt_();
}

bool Connection::has_unread() const {
  error_code ignored;
  return socket_.available(ignored) > 0;
}

// Also where there are bytes before the end, which nobody reads now.
bool Connection::has_ended() {
  pollfd end{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&end, 1, 0) > 0;
}

void Connection::tick(Clock::time_point now) {
  if (reads_later_ && has_ended()) return lose();
  if (now >= deadline_) {
    deadline_ = Clock::time_point::max();
    timed_out_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  } else if (now >= ping_at_) {
    ping_at_ = now + ping_interval_;
    ping_due_ = true;
    if (interrupt_) interrupt_();
  } else if (now >= interrupt_at_) {
    interrupt_at_ = Clock::time_point::max();
    if (interrupt_) interrupt_();
  }
}

}  // namespace braid::net::http
