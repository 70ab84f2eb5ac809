#include "app/serving/departure.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// How long shutdown waits for clients to take what was written for them, and for the last steps to come back.
constexpr std::chrono::seconds kFarewell{5};

// How long a server that leaves waits for the next request of a connection before it closes it, under which a request could be on its way.
// The common clients drop such connections by themselves before (httpx after 5 s, undici after 4).
constexpr std::chrono::seconds kLastRequest{6};

constexpr auto rethrow_failure = [](const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);  // a bug: it ends io_context::run()
};

}  // namespace

Departure::Departure(Parts parts) : parts_(std::move(parts)), farewell_(parts_.loop), delay_(parts_.loop) {}

void Departure::leave_sockets(std::string_view reason) {
  if (has_begun_) return;
  has_begun_ = true;
  spdlog::info("{}: finishing {} running requests, up to {}; new connections are another process's", reason,
               parts_.server.running_requests(), parts_.options.drain_timeout);
  asio::co_spawn(parts_.loop, leave(), rethrow_failure);
}

void Departure::end(const std::string& signal) {
  has_begun_ = true;
  spdlog::info("{}: finishing {} running requests, up to {}; once more stops them", signal, parts_.server.running_requests(),
               parts_.options.drain_timeout);
  asio::co_spawn(parts_.loop, end_after_delay(), rethrow_failure);
}

void Departure::end_now(const std::string& signal) {
  spdlog::info("{} again: stopping at once", signal);
  delay_.cancel();
  if (parts_.engines) parts_.engines->abort_remaining({ErrorCode::kDraining, "the server was stopped before the answer was complete", {}});
  parts_.server.stop_accepting();
  parts_.server.close_waiting();
  say_farewell(Clock::now() + kFarewell);
}

asio::awaitable<void> Departure::leave() {
  parts_.manager.notify("STOPPING=1");
  using namespace asio::experimental::awaitable_operators;
  parts_.server.leave_sockets();
  const Clock::time_point until = Clock::now() + parts_.options.drain_timeout;
  parts_.server.close_answered();
  asio::steady_timer deadline(parts_.loop, std::min(Clock::now() + kLastRequest, until));
  co_await (parts_.server.finished() || deadline.async_wait(asio::use_awaitable));
  parts_.server.close_idle();
  deadline.expires_at(until);
  co_await (parts_.server.finished() || deadline.async_wait(asio::use_awaitable));
  co_await shut_down(until);
}

// Who sends requests here by /readyz has until the end of the delay to look elsewhere; until then all are taken.
asio::awaitable<void> Departure::end_after_delay() {
  const auto most = parts_.options.drain_delay + parts_.options.drain_timeout + 2 * kFarewell;
  parts_.manager.notify(fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", std::chrono::microseconds(most).count()));
  if (parts_.options.drain_delay.count() > 0) {
    parts_.status.state = ServiceState::kLeaving;
    parts_.status.reason = "the server is going to shut down";
    delay_.expires_after(parts_.options.drain_delay);
    boost::system::error_code is_over;  // or cut short
    co_await delay_.async_wait(asio::redirect_error(asio::use_awaitable, is_over));
  }
  co_await shut_down(Clock::now() + parts_.options.drain_timeout);
}

asio::awaitable<void> Departure::shut_down(Clock::time_point drain_until) {
  parts_.status.state = ServiceState::kDraining;
  parts_.status.reason = "the server is shutting down";
  if (parts_.engines) co_await drain_engines(drain_until);
  co_await close_connections(drain_until);
  parts_.on_stopped();
  spdlog::info("stopped");
}

asio::awaitable<void> Departure::drain_engines(Clock::time_point until) {
  Engines& engines = *parts_.engines;
  const bool finished = co_await engines.drain(until);
  if (finished) co_return;
  spdlog::warn("the drain timeout is over: ending {} running requests", parts_.server.running_requests());
  engines.abort_remaining({ErrorCode::kDraining, "the server shut down before the answer was complete", {}});
  co_await engines.drain(Clock::now() + kFarewell);
}

// The engines have ended; slow readers may still take what their sessions hold, until the drain timeout.
asio::awaitable<void> Departure::close_connections(Clock::time_point drain_until) {
  parts_.server.stop_accepting();
  parts_.server.close_idle();
  const Clock::time_point soon = Clock::now() + kFarewell;
  say_farewell(parts_.server.running_requests() > 0 ? std::max(drain_until, soon) : soon);
  co_await parts_.server.finished();
  farewell_.cancel();
}

// Replaces the time of an earlier call.
void Departure::say_farewell(Clock::time_point until) {
  farewell_.expires_at(until);
  farewell_.async_wait([this](const boost::system::error_code& error) {
    if (!error) parts_.server.abort_connections("the server is shutting down");
  });
}

}  // namespace braid::app
