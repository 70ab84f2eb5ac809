// Starts the requests when they are due and keeps no more of them under way than allowed.
#pragma once

#include "app/bench/client.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace braid::bench {

struct LoadOptions {
  double request_rate = 0;           // arrivals a second, Poisson; infinite: all at once
  std::int64_t max_concurrency = 0;  // 0: no bound
  std::uint64_t seed = 0;
  bool shows_progress = false;  // a line on standard error, renewed
};

class Load {
 public:
  // All three outlive the load.
  Load(boost::asio::io_context& io, Client& client, const std::vector<std::string>& bodies, LoadOptions options);

  // Runs the io_context until every request has its outcome; the seconds that took.
  double run(std::vector<Outcome>& outcomes);

 private:
  boost::asio::awaitable<void> launch(std::vector<Outcome>& outcomes);
  boost::asio::awaitable<void> show_progress();
  void start(std::size_t index, Outcome& outcome);
  void finish(const Outcome& outcome);

  boost::asio::io_context& io_;
  Client& client_;
  const std::vector<std::string>& bodies_;
  LoadOptions options_;
  boost::asio::steady_timer room_;      // cancelled whenever a request ends
  boost::asio::steady_timer progress_;  // cancelled when all have
  std::int64_t active_ = 0;
  std::size_t done_ = 0;
  std::size_t failed_ = 0;
};

}  // namespace braid::bench
