// Every open connection, and the one timer that serves their deadlines and pings.
#pragma once

#include "net/http/connection.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>
#include <memory>

namespace braid::net::http {

// Loop only. The timer runs only while a connection is open: an idle server does not wake up.
class ConnectionSet : public std::enable_shared_from_this<ConnectionSet> {
 public:
  ConnectionSet(boost::asio::io_context& loop, std::chrono::milliseconds tick);

  void add(Connection& connection);
  void remove(Connection& connection);
  std::size_t size() const { return size_; }
  std::size_t backlog_bytes() const;  // of all connections

  void close_idle();     // between two requests
  void close_waiting();  // for bytes of any request
  void close_all();
  boost::asio::awaitable<void> empty();  // returns when there is none

 private:
  using List = boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>>;

  void start_timer();
  template <class Action>
  void for_each(Action action);

  List connections_;
  std::size_t size_ = 0;
  bool ticking_ = false;
  std::chrono::milliseconds tick_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer emptied_;  // never expires: cancelled when the last connection goes
};

}  // namespace braid::net::http
