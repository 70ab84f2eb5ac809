#include "net/predict/waiting.h"

#include "net/generation/deadlines.h"
#include "net/service/codec_jobs.h"

#include <optional>
#include <utility>

namespace braid::net::predict {
namespace {

namespace asio = boost::asio;

// While it lives, a client that goes calls `interrupt`, and so does the time of Connection::interrupt_at().
class Watch {
 public:
  Watch(http::Connection& connection, const ServerOptions& options, std::function<void()> interrupt) : connection_(connection) {
    connection.begin_watch(options.max_header_bytes + options.max_body_bytes, std::move(interrupt));
  }
  ~Watch() {
    connection_.interrupt_at(http::Clock::time_point::max());
    connection_.end_watch();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  http::Connection& connection_;
};

// A prediction is known by its id while it lives.
class Entry {
 public:
  Entry(Service& service, const Asker& asker, PendingPrediction& pending)
      : service_(service), place_(service.predictions.emplace(asker.request_id, RunningPrediction{asker.client.get(), &pending})) {}
  ~Entry() { service_.predictions.erase(place_); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  Service& service_;
  decltype(Service::predictions)::iterator place_;
};

}  // namespace

Deadlines deadlines_of(const Service& service) { return {service.options.limits_of(WorkClass::kPrediction), http::Clock::now()}; }

asio::awaitable<Result<void>> run_text(Service& service, http::Connection& connection, const Deadlines& deadlines, Progress progress,
                                       std::size_t bytes, std::function<void()> work) {
  if (bytes <= service.options.max_inline_body_bytes) {
    work();
    co_return Result<void>();
  }
  Abandonment abandonment;
  const Watch watch(connection, service.options, [&] {
    if (connection.gone() || deadlines.overdue(http::Clock::now(), progress)) abandonment.abandon();
  });
  connection.interrupt_at(deadlines.next(progress));
  const Result<void> ran = co_await run_codec_job(service, abandonment, std::move(work));
  if (ran || connection.gone()) co_return ran;
  std::optional<Failure> overdue = deadlines.overdue(http::Clock::now(), progress);
  if (overdue) co_return std::move(overdue->error);
  co_return ran;
}

asio::awaitable<Result<std::vector<Tensor>>> outputs_of(Service& service, http::Connection& connection, const Deadlines& deadlines,
                                                        const Asker& asker, PendingPrediction& pending) {
  const Entry entry(service, asker, pending);
  const Watch watch(connection, service.options, [&pending] { pending.arrived().notify(); });
  std::optional<Result<std::vector<Tensor>>> outputs = pending.try_take();
  while (!outputs && !connection.gone()) {
    const Progress progress = pending.started() ? Progress::kStarted : Progress::kQueued;
    std::optional<Failure> overdue = deadlines.overdue(http::Clock::now(), progress);
    if (overdue) co_return std::move(overdue->error);
    connection.interrupt_at(deadlines.next(progress));
    co_await pending.arrived().wait();
    outputs = pending.try_take();
  }
  if (!outputs) co_return Error{ErrorCode::kCancelled, "the client went away", ""};
  co_return std::move(*outputs);
}

}  // namespace braid::net::predict
