// Sends traces to a collector of OpenTelemetry (OTLP over HTTP, JSON), by a thread of its own.
#pragma once

#include "app/options.h"
#include "net/log/trace.h"
#include "registry/http_client.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace braid::app {

// Whoever has a trace never waits: 2,048 of them wait for a collector that is slow, and more are lost, as are those that it does not take;
// the log says so when that begins and how many when it ends.
class TraceExporter final : public net::TraceSink {
 public:
  TraceExporter(TraceOptions options, std::string ca_file);
  ~TraceExporter() override;  // what waits is sent, for which the collector has two seconds to be reached and two more to answer

  // Of those whose caller has not said whether it samples, every 1/share-th.
  void take(net::RequestTrace&& trace) noexcept override;

 private:
  void run();
  void send(const std::vector<net::RequestTrace>& traces, std::size_t overrun);

  const TraceOptions options_;
  const registry::HttpOptions http_;
  const std::string url_;
  double due_ = 0.0;  // loop only: of the next trace; 1 and it is taken

  std::mutex mutex_;  // for the time of a push or a swap
  std::condition_variable arrived_;
  std::vector<net::RequestTrace> waiting_;
  std::size_t lost_ = 0;
  bool ended_ = false;

  std::mt19937_64 random_{std::random_device{}()};  // these three are the thread's
  std::size_t lost_here_ = 0;                       // since something has last arrived
  bool is_failing_ = false;
  std::thread thread_;  // the last one: it uses all the others
};

}  // namespace braid::app
