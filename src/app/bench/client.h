// Sends one request at a time per connection and reads its stream. Everything runs on one io_context with one thread.
#pragma once

#include "app/bench/outcome.h"
#include "app/bench/target.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <simdjson.h>
#include <string>
#include <vector>

namespace braid::bench {

inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);  // gives errors as values

class ResponseReader;

class Client {
 public:
  // `head` is everything of a request up to the value of Content-Length.
  Client(boost::asio::io_context& io, std::vector<boost::asio::ip::tcp::endpoint> endpoints, std::string head,
         std::chrono::milliseconds timeout, bool streams = true);

  // Fills `outcome`, which outlives the call, as does `body`. The time runs from the call: connecting counts, unless a connection of an
  // earlier request is still open.
  boost::asio::awaitable<void> send(const std::string& body, Outcome& outcome);

  std::int64_t chunks() const { return chunks_; }  // with text, over all requests so far

 private:
  struct Connection;
  boost::asio::awaitable<std::shared_ptr<Connection>> connect(Outcome& outcome, Clock::time_point deadline);
  boost::asio::awaitable<void> exchange(std::shared_ptr<Connection> connection, const std::string& request, ResponseReader& reader);
  void judge(const ResponseReader& reader, const Connection& connection, StreamMeter& meter, Outcome& outcome);
  std::shared_ptr<Connection> take_idle();

  boost::asio::io_context& io_;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints_;
  std::string head_;
  std::chrono::milliseconds timeout_;
  bool streams_;  // otherwise answers come whole
  std::vector<std::shared_ptr<Connection>> idle_;
  simdjson::dom::parser parser_;
  std::vector<char> buffer_;  // one for all connections: it is emptied before the next is read
  std::int64_t chunks_ = 0;
};

}  // namespace braid::bench
