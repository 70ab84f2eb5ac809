#include "app/bench/load.h"

#include <boost/asio/co_spawn.hpp>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <random>

namespace braid::bench {

namespace asio = boost::asio;

Load::Load(asio::io_context& io, Client& client, const std::vector<std::string>& bodies, LoadOptions options)
    : io_(io), client_(client), bodies_(bodies), options_(options), room_(io), progress_(io) {}

void Load::start(std::size_t index, Outcome& outcome) {
  ++active_;
  asio::co_spawn(io_, client_.send(bodies_[index], outcome), [this, &outcome](std::exception_ptr bug) {
    if (bug) std::rethrow_exception(bug);
    finish(outcome);
  });
}

void Load::finish(const Outcome& outcome) {
  --active_;
  ++done_;
  failed_ += outcome.failure.empty() ? 0 : 1;
  room_.cancel();
  if (done_ == bodies_.size()) progress_.cancel();
}

asio::awaitable<void> Load::launch(std::vector<Outcome>& outcomes) {
  std::mt19937_64 random(options_.seed);
  std::exponential_distribution<double> gap(std::isfinite(options_.request_rate) ? options_.request_rate : 1.0);
  asio::steady_timer arrival(io_);
  auto due = Clock::now();
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    if (std::isfinite(options_.request_rate) && i > 0) {
      due += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap(random)));
      arrival.expires_at(due);
      co_await arrival.async_wait(kAwait);
    }
    while (options_.max_concurrency > 0 && active_ >= options_.max_concurrency) {
      room_.expires_at(Clock::time_point::max());
      co_await room_.async_wait(kAwait);
    }
    start(i, outcomes[i]);
  }
}

asio::awaitable<void> Load::show_progress() {
  const auto began = Clock::now();
  while (done_ < bodies_.size()) {
    progress_.expires_after(std::chrono::milliseconds(500));
    co_await progress_.async_wait(kAwait);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    const auto line = fmt::format("\r{}/{} done, {} failed, {} under way, {:.0f} chunks/s, {:.0f} s ", done_, bodies_.size(), failed_,
                                  active_, static_cast<double>(client_.chunks()) / seconds, seconds);
    std::fputs(line.c_str(), stderr);
  }
  std::fputc('\n', stderr);
}

double Load::run(std::vector<Outcome>& outcomes) {
  outcomes.assign(bodies_.size(), {});
  const auto rethrow = [](std::exception_ptr bug) {
    if (bug) std::rethrow_exception(bug);
  };
  const auto began = Clock::now();
  auto ended = began;
  asio::co_spawn(io_, launch(outcomes), rethrow);
  if (options_.shows_progress) asio::co_spawn(io_, show_progress(), rethrow);
  io_.restart();
  while (done_ < bodies_.size() && io_.run_one() > 0) ended = Clock::now();
  io_.run();
  return std::chrono::duration<double>(ended - began).count();
}

}  // namespace braid::bench
