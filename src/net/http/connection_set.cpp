#include "net/http/connection_set.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace braid::net::http {

namespace asio = boost::asio;

ConnectionSet::ConnectionSet(asio::io_context& loop, std::chrono::milliseconds tick)
    : tick_(tick), timer_(loop), emptied_(loop, Clock::time_point::max()) {}

void ConnectionSet::add(Connection& connection) {
  connections_.push_back(connection);
  ++size_;
  if (!ticking_) start_timer();
}

void ConnectionSet::remove(Connection& connection) {
  connection.unlink();
  --size_;
  if (size_ > 0) return;
  timer_.cancel();
  emptied_.cancel();
}

std::size_t ConnectionSet::backlog_bytes() const {
  std::size_t bytes = 0;
  for (const Connection& connection : connections_) bytes += connection.backlog_bytes();
  return bytes;
}

// What an action calls may end sessions only later, on the loop: no connection leaves the list meanwhile.
template <class Action>
void ConnectionSet::for_each(Action action) {
  for (Connection& connection : connections_) action(connection);
}

void ConnectionSet::close_idle() {
  for_each([](Connection& connection) {
    if (connection.awaits() == Connection::Awaits::kNext && !connection.has_unread()) connection.close();
  });
}

void ConnectionSet::close_waiting() {
  for_each([](Connection& connection) {
    if (connection.awaits() != Connection::Awaits::kNothing && !connection.has_unread()) connection.close();
  });
}

void ConnectionSet::close_all() {
  for_each([](Connection& connection) { connection.close(); });
}

asio::awaitable<void> ConnectionSet::empty() {
  while (size_ > 0) {
    boost::system::error_code cancelled;
    co_await emptied_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

void ConnectionSet::start_timer() {
  ticking_ = true;
  timer_.expires_after(tick_);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& stopped) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->ticking_ = false;
    if (self->size_ == 0) return;
    const auto now = Clock::now();
    if (!stopped) self->for_each([now](Connection& connection) { connection.tick(now); });
    self->start_timer();
  });
}

}  // namespace braid::net::http
