#include "app/serving.h"

#include "app/disk_cache.h"
#include "app/heap.h"
#include "app/key_file.h"
#include "app/load_progress.h"
#include "app/signals.h"
#include "app/standard_stream.h"
#include "app/version.h"
#include "app/warm_up.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <new>
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

// Address space: what some 20,000 streams take.
constexpr std::size_t kStreamsMemory = std::size_t{256} << 20;

constexpr int kHungExitCode = 70;  // EX_SOFTWARE

constexpr auto rethrow = [](const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);  // a bug: it ends io_context::run()
};

// While it lives, this thread blocks with nothing to lose: SIGINT and SIGTERM end the process, and SIGHUP comes afterwards.
class BlockingWait {
 public:
  BlockingWait() {
    struct sigaction end {};
    end.sa_handler = [](int) { std::_Exit(EXIT_SUCCESS); };
    sigaction(SIGINT, &end, &interrupt_);
    sigaction(SIGTERM, &end, &terminate_);
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, &mask_);
  }
  ~BlockingWait() {
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    sigaction(SIGINT, &interrupt_, nullptr);
  }
  BlockingWait(const BlockingWait&) = delete;
  BlockingWait& operator=(const BlockingWait&) = delete;

 private:
  sigset_t mask_{};
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

// How often deadlines are looked at: what is asked for in milliseconds is late by as much again at most, or by 10 ms.
std::chrono::milliseconds tick_for(const net::ServerOptions& http) {
  std::chrono::milliseconds tick = http.tick;
  for (const auto timeout : {http.header_timeout, http.body_timeout, http.idle_timeout, http.write_timeout, http.queue_timeout,
                             http.first_token_timeout, http.request_timeout})
    if (timeout.count() > 0) tick = std::min(tick, timeout);
  return std::max(tick, std::chrono::milliseconds(10));
}

}  // namespace

Serving::Serving(asio::io_context& loop, const ServeOptions& options, const Logging& logging)
    : loop_(loop), options_(options), logging_(logging),
      watchdog_(loop, manager_, {.late = options.watch.step_timeout, .hung = options.watch.step_abort}, watchdog_hooks()),
      predecessors_end_(loop), signals_(loop), farewell_(loop), delay_(loop) {
  status_.reason = "the model is loading";
}

Serving::~Serving() {
  if (loader_.joinable()) loader_.join();
}

Watchdog::Hooks Serving::watchdog_hooks() {
  return {.is_busy = [this] { return strand_ && !strand_->idle(); },
          .step_age = [this] { return Watchdog::Seconds(strand_ ? strand_->running_seconds() : 0.0); },
          .on_late =
              [this](Watchdog::Seconds age) {
    spdlog::error("a step has been running for {:.0f} s: /readyz says so until it ends", age.count());
    if (status_.state != ServiceState::kReady) return;
    status_.state = ServiceState::kLate;
    status_.reason = fmt::format("a step has been running for more than {}", options_.watch.step_timeout);
          },
          .on_recovered =
              [this] {
    spdlog::warn("the late step has ended");
    if (status_.state == ServiceState::kLate) status_ = {ServiceState::kReady, {}, status_.models};
          },
      .on_hung = [](Watchdog::Seconds age) {
        complain(fmt::format("a step has been running for {:.0f} s and will not end: giving up", age.count()));
        std::_Exit(kHungExitCode);
      }};
}

Result<void> Serving::start() {
  add_operator_signals(signals_);  // one that comes before await_signal() waits for it
  Result<std::vector<net::access::ApiKey>> keys = load_api_keys(options_.access.api_key_file, options_.access.limits);
  if (!keys) return keys.error();
  net::ServerOptions http = http_options(std::move(*keys));
  http.reload = [this] { return read_again(); };
  server_.emplace(loop_, std::move(http), status_);
  if (const Result<void> activated = take_activated(); !activated) return activated;
  if (const Result<void> found = find_predecessor(); !found) return found;
  await_signal();
  if (manager_.watchdog_interval()) watchdog_.arm();
  if (!predecessor_) {
    if (const Result<void> serving = begin_serving({}); !serving) return serving;
  }
  if (options_.no_model) {
    status_ = {ServiceState::kNoModel, "started without a model", {}};
    if (announce_ready()) say("ready without a model");
  } else {
    begin_loading();
  }
  return {};
}

net::ServerOptions Serving::http_options(std::vector<net::access::ApiKey> keys) const {
  net::ServerOptions http = options_.http;
  http.tick = tick_for(http);
  http.version = kVersion;
  http.api_keys = std::move(keys);
  http.anonymous.limits = options_.access.limits;
  http.log = {logging_.requests(), options_.log.format, options_.log.access, options_.log.proxies};
  return http;
}

// The server before this one, which goes on serving its sockets until this one is ready; waits until it can be followed.
Result<void> Serving::find_predecessor() {
  if (options_.takeover.empty()) return {};
  Result<std::optional<net::Predecessor>> found = [this] {
    const BlockingWait wait;
    return net::Predecessor::find(options_.takeover);
  }();
  if (!found) return found.error();
  predecessor_ = std::move(*found);
  Result<net::ListeningSocket> control = predecessor_ ? predecessor_->take_control() : net::listen_unix(options_.takeover, 0600, 16);
  if (!control) return control.error();
  control_ = std::move(*control);
  return {};
}

Result<void> Serving::take_activated() {
  Result<std::vector<net::ListeningSocket>> sockets = net::activated_sockets();
  if (!sockets) return sockets.error();
  activated_sockets_ = std::move(*sockets);
  activated_ = !activated_sockets_.empty();
  if (activated_ && options_.names_addresses)
    spdlog::warn("--host, --port, --listen and --unix-socket are not used: the service manager has opened the sockets");
  return {};
}

// On sockets that were `given` and those of the service manager, or else on its own.
Result<void> Serving::begin_serving(std::vector<net::ListeningSocket> given) {
  net::add_sockets(given, std::move(activated_sockets_));
  const Result<std::uint16_t> started = server_->start(std::move(given));
  if (!started) return started.error();
  if (const std::size_t count = server_->addresses().size(); !options_.takeover.empty() && count > net::kMostPassedSockets)
    return invalid_argument(fmt::format("--takeover can pass on {} addresses, and there are {}", net::kMostPassedSockets, count));
  for (const std::string& address : server_->addresses()) say("braid {} listening on {}", kVersion, address);
  return {};
}

void Serving::begin_loading() {
  Error exhausted{ErrorCode::kIo, "not enough memory to load the model", {}};  // there is none left to say so then
  loader_ = std::thread([this, work = asio::make_work_guard(loop_), exhausted = std::move(exhausted),
                         disk_lock = predecessor_ ? predecessor_->take_disk_lock() : net::FileDescriptor()]() mutable {
    Result<LoadedModel> loaded = [this, &exhausted, &disk_lock]() -> Result<LoadedModel> {
      try {
        LoadProgress progress(&manager_);
        const bool has_disk = !options_.disk.directory.empty();
        Result<LoadedModel> model = load_model(
            options_.model, options_.batch.max_batch,
            [&progress](std::string_view what, std::uint64_t done, std::uint64_t total) { progress.show(what, done, total); }, has_disk);
        if (!model || !has_disk) return model;
        auto disk_cache = open_disk_cache(options_.disk, *model, loop_, std::move(disk_lock));
        if (!disk_cache) return disk_cache.error();
        model->disk_cache = std::move(*disk_cache);
        return model;
      } catch (const std::bad_alloc&) {
        return std::move(exhausted);
      } catch (const std::exception& bug) {
        return Error{ErrorCode::kInternal, fmt::format("loading the model failed: {}", bug.what()), {}};
      }
    }();
    asio::post(loop_, [this, loaded = std::move(loaded)]() mutable { on_loaded(std::move(loaded)); });
  });
}

void Serving::on_loaded(Result<LoadedModel> loaded) {
  loader_.join();
  if (!loaded) return fail(loaded.error());
  loaded_ = std::move(*loaded);
  sched::SchedulerOptions options = scheduler_options(*loaded_, options_.batch, options_.model.block_size);
  options.disk_always = options_.disk.always;
  options.write_through = options_.disk.write_through;
  if (const std::optional<Error> fault = sched::find_fault(options)) return fail(*fault);
  strand_.emplace(loop_, [this] { watchdog_.arm(); });
  scheduler_.emplace(loop_, *strand_, *loaded_->language_model, options, loaded_->disk_cache.get());

  served_.id = options_.alias.empty() ? loaded_->id : options_.alias;
  served_.created = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  served_.context_length = options.context_length;
  served_.most_waiting = static_cast<std::size_t>(options.max_waiting);
  served_.architecture = loaded_->architecture;
  served_.parameters = loaded_->language_model->parameters();
  served_.fingerprint = loaded_->fingerprint;
  served_.engine = &*scheduler_;
  served_.pooling = options_.pooling;
  served_.defaults = or_defaults(options_.defaults, loaded_->defaults);
  served_.codec = loaded_->codec.get();
  served_.constraints = loaded_->constraints.get();
  say("model {}: {}, {:.1f} million parameters, context {}, {} kernels, {} threads", served_.id, served_.architecture,
      static_cast<double>(served_.parameters) / 1e6, served_.context_length, loaded_->table->name, loaded_->threads);
  say("memory: {}", describe_memory(*loaded_));
  asio::co_spawn(loop_, become_ready(), rethrow);
}

asio::awaitable<void> Serving::become_ready() {
  if (!options_.no_warmup) {
    const Result<void> warm = co_await warm_up(*scheduler_, served_.context_length);
    if (!warm && !shutting_down_) {
      fail(warm.error());
      co_return;
    }
  }
  if (shutting_down_) co_return;
  if (options_.model.huge_pages != files::HugePages::kOff) grow_in_huge_pages(kStreamsMemory);
  status_ = {ServiceState::kReady, {}, ModelDirectory({&served_}, options_.any_model_name)};
  if (announce_ready()) say("ready after {:.2f} s", std::chrono::duration<double>(Clock::now() - started_).count());
}

// From here on this server serves what a predecessor has passed on, and can have a successor. False when it cannot serve that.
bool Serving::announce_ready() {
  if (predecessor_) {
    if (const Result<void> serving = begin_serving(predecessor_->take_sockets()); !serving) {
      fail(serving.error());
      return false;
    }
    await_disk(predecessor_->dismiss());
    predecessor_.reset();
  }
  manager_.notify("READY=1");
  if (!control_) return true;
  succession_ = std::make_shared<net::Succession>(
      loop_, std::move(*control_),
      [this] {
    return net::Estate{server_->duplicate_sockets(), copy_lock(loaded_ ? loaded_->disk_cache.get() : nullptr)};
      },
      [this] { take_leave("a successor serves"); });
  control_.reset();
  succession_->start();
  return true;
}

// The folder is the predecessor's until that has closed its end of the connection, which it does last.
void Serving::await_disk(net::FileDescriptor predecessor) {
  if (!loaded_ || loaded_->disk_cache == nullptr || !loaded_->disk_cache->awaits_predecessor()) return;
  predecessors_end_.assign(predecessor.release());
  predecessors_end_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;  // this server ends first
    spdlog::info("disk cache: the server before this one has ended; {} is looked through", options_.disk.directory);
    loaded_->disk_cache->take_over();
    predecessors_end_.close();
  });
}

void Serving::fail(const Error& error) {
  failure_ = error;
  status_ = {ServiceState::kFailed, error.message, {}};
  loop_.stop();
}

void Serving::await_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error || stopped_) return;  // one that had come before the wait was cancelled: to wait once more would keep the loop for ever
    await_signal();
    on_signal(number);
  });
}

void Serving::on_signal(int number) {
  const std::string name = signal_name(number);
  switch (wish_of(number)) {
    case Wish::kEnd:
      return end(name);
    case Wish::kReload:
      return reload();
    case Wish::kReport:
      return report_state(name);
    case Wish::kNothing:
      spdlog::info("{} is nothing to this server: going on", name);
  }
}

void Serving::end(const std::string& signal) {
  if (loader_.joinable()) {
    // Loading cannot be interrupted and holds nothing that must be saved.
    spdlog::info("{} while the model loads: stopping", signal);
    if (!predecessor_) server_->stop_accepting();
    spdlog::shutdown();  // writes what waits
    std::_Exit(EXIT_SUCCESS);
  }
  const bool again = std::exchange(signalled_, true);
  if (!shutting_down_) {
    if (succession_) succession_->stop();
    if (activated_ || (succession_ && succession_->has_successor())) return take_leave(signal);
    spdlog::info("{}: finishing {} running requests, up to {}; once more stops them", signal, server_->running_requests(),
                 options_.drain_timeout);
    shutting_down_ = true;
    asio::co_spawn(loop_, end_after_delay(), rethrow);
  } else if (!again) {
    spdlog::info("{}: still finishing {} running requests; once more stops them", signal, server_->running_requests());
  } else {
    spdlog::info("{} again: stopping at once", signal);
    delay_.cancel();
    if (scheduler_) scheduler_->abort_remaining({ErrorCode::kDraining, "the server was stopped before the answer was complete", {}});
    server_->stop_accepting();
    server_->close_waiting();
    say_farewell(Clock::now() + kFarewell);
  }
}

void Serving::report_state(const std::string& signal) const {
  const EngineStats stats = scheduler_ ? scheduler_->stats() : EngineStats();
  spdlog::info("{}: {}; {} connections, {} requests, {} sequences run and {} wait, {} of {} KV blocks are free", signal,
               status_.reason.empty() ? "ready" : status_.reason, server_->open_connections(), server_->running_requests(),
               stats.prefilling + stats.decoding, stats.waiting, stats.blocks_free, stats.blocks_total);
}

// What cannot be read leaves that of before as it is; the other is read nevertheless.
Result<std::size_t> Serving::read_again() {
  Result<std::vector<net::access::ApiKey>> keys = load_api_keys(options_.access.api_key_file, options_.access.limits);
  const std::size_t count = keys ? keys->size() : 0;
  if (keys) server_->replace_api_keys(std::move(*keys));
  const Result<void> certificate = server_->reload_tls();
  if (!certificate) return Error{ErrorCode::kIo, fmt::format("{}; the certificate of before stays", certificate.error().message), ""};
  if (!keys) return Error{ErrorCode::kIo, fmt::format("{}; the API keys of before stay", keys.error().message), ""};
  return count;
}

void Serving::reload() {
  const Result<std::size_t> keys = read_again();
  if (!keys) return spdlog::error("SIGHUP: {}", keys.error().message);
  spdlog::info("SIGHUP: files read again, {} API keys", *keys);
}

// Another process has the listening sockets: whoever is connected here is answered, and nobody is turned away.
void Serving::take_leave(std::string_view reason) {
  if (shutting_down_) return;
  spdlog::info("{}: finishing {} running requests, up to {}; new connections are another process's", reason, server_->running_requests(),
               options_.drain_timeout);
  shutting_down_ = true;
  asio::co_spawn(loop_, leave(), rethrow);
}

asio::awaitable<void> Serving::leave() {
  manager_.notify("STOPPING=1");
  using namespace asio::experimental::awaitable_operators;
  server_->leave_sockets();
  const Clock::time_point until = Clock::now() + options_.drain_timeout;
  server_->close_answered();
  asio::steady_timer deadline(loop_, std::min(Clock::now() + kLastRequest, until));
  co_await (server_->finished() || deadline.async_wait(asio::use_awaitable));
  server_->close_idle();
  deadline.expires_at(until);
  co_await (server_->finished() || deadline.async_wait(asio::use_awaitable));
  co_await shut_down(until);
}

// Who sends requests here by /readyz has until the end of the delay to look elsewhere; until then all are taken.
asio::awaitable<void> Serving::end_after_delay() {
  const auto most = options_.drain_delay + options_.drain_timeout + 2 * kFarewell;
  manager_.notify(fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", std::chrono::microseconds(most).count()));
  if (options_.drain_delay.count() > 0) {
    status_.state = ServiceState::kLeaving;
    status_.reason = "the server is going to shut down";
    delay_.expires_after(options_.drain_delay);
    boost::system::error_code is_over;  // or cut short
    co_await delay_.async_wait(asio::redirect_error(asio::use_awaitable, is_over));
  }
  co_await shut_down(Clock::now() + options_.drain_timeout);
}

asio::awaitable<void> Serving::shut_down(Clock::time_point drain_until) {
  status_.state = ServiceState::kDraining;
  status_.reason = "the server is shutting down";
  if (scheduler_) co_await drain_engine(drain_until);
  co_await close_connections(drain_until);
  stopped_ = true;
  signals_.cancel();
  predecessors_end_.close();
  watchdog_.stop();
  spdlog::info("stopped");
}

asio::awaitable<void> Serving::drain_engine(Clock::time_point until) {
  scheduler_->begin_drain();
  const bool finished = co_await scheduler_->drained(until);
  if (finished) co_return;
  spdlog::warn("the drain timeout is over: ending {} running requests", server_->running_requests());
  scheduler_->abort_remaining({ErrorCode::kDraining, "the server shut down before the answer was complete", {}});
  co_await scheduler_->drained(Clock::now() + kFarewell);
}

// The engine has ended; slow readers may still take what their sessions hold, until the drain timeout.
asio::awaitable<void> Serving::close_connections(Clock::time_point drain_until) {
  server_->stop_accepting();
  server_->close_idle();
  const Clock::time_point soon = Clock::now() + kFarewell;
  say_farewell(server_->running_requests() > 0 ? std::max(drain_until, soon) : soon);
  co_await server_->finished();
  farewell_.cancel();
}

// Replaces the time of an earlier call.
void Serving::say_farewell(Clock::time_point until) {
  farewell_.expires_at(until);
  farewell_.async_wait([this](const boost::system::error_code& error) {
    if (!error) server_->abort_connections("the server is shutting down");
  });
}

}  // namespace braid::app
