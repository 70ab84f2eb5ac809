#include "app/bench/client.h"

#include "app/bench/response_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

namespace braid::bench {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// Shared with the deadline's handler, which closes the socket and so ends whatever waits for it.
struct Client::Connection : std::enable_shared_from_this<Connection> {
  explicit Connection(asio::io_context& io) : socket(io), deadline(io) {}

  void close_at(Clock::time_point time) {
    deadline.expires_at(time);
    deadline.async_wait([self = shared_from_this()](boost::system::error_code error) {
      // The last request's handler may come late, when the connection serves the next one already.
      if (error || self->finished || self->deadline.expiry() > Clock::now()) return;
      self->timed_out = true;
      boost::system::error_code ignored;  // closing is all that is left to do
      self->socket.close(ignored);
    });
  }

  tcp::socket socket;
  asio::steady_timer deadline;
  bool timed_out = false;
  bool finished = false;
  std::string failure;  // of the exchange; empty: the response was read to its end
};

Client::Client(asio::io_context& io, std::vector<tcp::endpoint> endpoints, std::string head, std::chrono::milliseconds timeout,
               bool streams)
    : io_(io), endpoints_(std::move(endpoints)), head_(std::move(head)), timeout_(timeout), streams_(streams),
      buffer_(std::size_t{64} << 10) {}

std::shared_ptr<Client::Connection> Client::take_idle() {
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

asio::awaitable<std::shared_ptr<Client::Connection>> Client::connect(Outcome& outcome, Clock::time_point deadline) {
  auto connection = std::make_shared<Connection>(io_);
  connection->close_at(deadline);
  auto [error, endpoint] = co_await asio::async_connect(connection->socket, endpoints_, kAwait);
  if (error) {
    outcome.failure = connection->timed_out ? "timeout" : "connect";
    outcome.message = error.message();
    connection->deadline.cancel();
    co_return nullptr;
  }
  boost::system::error_code ignored;  // without the option small writes may be held back, which the figures would show
  connection->socket.set_option(tcp::no_delay(true), ignored);
  connection->socket.non_blocking(true, ignored);
  co_return connection;
}

asio::awaitable<void> Client::exchange(std::shared_ptr<Connection> connection, const std::string& request, ResponseReader& reader) {
  auto [write_error, written] = co_await asio::async_write(connection->socket, asio::buffer(request), kAwait);
  if (write_error) {
    connection->failure = write_error.message();
    co_return;
  }
  while (reader.state() == ResponseReader::State::kHead || reader.state() == ResponseReader::State::kBody) {
    auto [wait_error] = co_await connection->socket.async_wait(tcp::socket::wait_read, kAwait);
    boost::system::error_code error = wait_error;
    const std::size_t count = error ? 0 : connection->socket.read_some(asio::buffer(buffer_), error);
    if (count > 0) reader.feed({buffer_.data(), count});
    if (error == asio::error::would_block || error == asio::error::try_again) continue;
    if (error == asio::error::eof) {
      reader.close();
      if (reader.state() == ResponseReader::State::kBroken) connection->failure = "the connection was closed";
      co_return;
    }
    if (error) {
      connection->failure = error.message();
      co_return;
    }
  }
}

void Client::judge(const ResponseReader& reader, const Connection& connection, StreamMeter& meter, Outcome& outcome) {
  if (connection.timed_out) {
    outcome.failure = "timeout";
    outcome.message = "no end within the time allowed";
  } else if (reader.status() != 0 && (reader.status() < 200 || reader.status() >= 300)) {
    outcome.failure = fmt::format("http_{}", reader.status());
    outcome.message = reader.error_body().substr(0, 400);
  } else if (!connection.failure.empty()) {
    outcome.failure = "disconnect";
    outcome.message = connection.failure;
  } else if (reader.state() == ResponseReader::State::kBroken) {
    outcome.failure = "protocol";
    outcome.message = "the response is no HTTP, or an event in it has no end";
  } else {
    if (!streams_) meter.on_whole(reader.body(), Clock::now());
    meter.finish();
  }
}

asio::awaitable<void> Client::send(const std::string& body, Outcome& outcome) {
  const std::string request = fmt::format("{}{}\r\n\r\n{}", head_, body.size(), body);
  const auto start = Clock::now();
  for (auto connection = take_idle();; connection = nullptr) {
    const bool reused = connection != nullptr;
    if (reused) {
      connection->finished = false;
      connection->close_at(start + timeout_);
    } else {
      connection = co_await connect(outcome, start + timeout_);
      if (connection == nullptr) co_return;
    }
    StreamMeter meter(parser_, start, outcome);
    const auto on_event = [&](std::string_view data) {
      const auto before = meter.chunks();
      meter.on_event(data, Clock::now());
      chunks_ += meter.chunks() - before;
    };
    ResponseReader reader = streams_ ? ResponseReader(on_event) : ResponseReader();
    co_await exchange(connection, request, reader);
    connection->finished = true;
    connection->deadline.cancel();
    // A server may close an idle connection at any time: nothing was answered, so the request is sent once more.
    if (reused && reader.status() == 0 && !connection->timed_out) continue;
    judge(reader, *connection, meter, outcome);
    if (reader.state() == ResponseReader::State::kDone && reader.keeps_alive() && !connection->timed_out)
      idle_.push_back(std::move(connection));
    co_return;
  }
}

}  // namespace braid::bench
