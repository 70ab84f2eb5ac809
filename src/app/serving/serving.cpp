#include "app/serving/serving.h"

#include "app/heap.h"
#include "app/key_file.h"
#include "app/models/open_registry.h"
#include "app/serving/reconfiguration.h"
#include "app/signals.h"
#include "app/standard_stream.h"
#include "app/tracing/trace_exporter.h"
#include "app/version.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <exception>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::app {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// Address space: what some 20,000 streams take.
constexpr std::size_t kStreamsMemory = std::size_t{256} << 20;

constexpr int kHungExitCode = 70;  // EX_SOFTWARE

// How often deadlines are looked at: what is asked for in milliseconds is late by as much again at most, or by 10 ms.
std::chrono::milliseconds tick_for(const net::ServerOptions& http) {
  std::chrono::milliseconds tick = http.tick;
  for (const auto timeout : {http.header_timeout, http.body_timeout, http.idle_timeout, http.write_timeout, http.queue_timeout,
                             http.first_token_timeout, http.request_timeout, http.embedding_timeouts.queue, http.embedding_timeouts.total,
                             http.prediction_timeouts.queue, http.prediction_timeouts.total})
    if (timeout.count() > 0) tick = std::min(tick, timeout);
  return std::max(tick, std::chrono::milliseconds(10));
}

}  // namespace

Serving::Serving(asio::io_context& loop, const ServeOptions& options, const Logging& logging)
    : loop_(loop), options_(options), current_(options), logging_(logging),
      watchdog_(loop, manager_, {.late = options.watch.step_timeout, .hung = options.watch.step_abort}, watchdog_hooks()),
      handover_(loop, options), signals_(loop), loader_(loop, options, manager_) {
  status_.reason = "the model is loading";
}

Watchdog::Hooks Serving::watchdog_hooks() {
  return {.is_busy = [this] { return engines_ && engines_->is_busy(); },
          .step_age = [this] { return Watchdog::Seconds(engines_ ? engines_->running_step_seconds() : 0.0); },
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
    if (status_.state != ServiceState::kLate) return;
    status_ = {ServiceState::kReady, {}, status_.models, status_.host, status_.compute};
    is_broken_ = false;
    tell_whether_broken();  // it may be late because what computes it is lost
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
  Result<std::shared_ptr<ModelRegistry>> registry = registry_to_serve(options_, [this] { asio::post(loop_, [this] { look_again(); }); });
  if (!registry) return registry.error();
  http.registry = registry_ = std::move(*registry);
  if (!options_.peers.nodes.empty()) {
    Result<std::string> key = read_peer_key(options_.peers.key_file);
    if (!key) return key.error();
    peer_key_ = std::move(*key);
    if (!options_.peers.state_folder.empty()) {
      Result<ChangeRecord> record = ChangeRecord::open(options_.peers.state_folder);
      if (!record) return Error{ErrorCode::kIo, fmt::format("--peer-state: {}", record.error().message), {}};
      change_record_ = std::move(*record);
    }
    http.changes = changes_ = std::make_shared<net::Changes>();
  }
  server_.emplace(loop_, std::move(http), status_);
  departure_.emplace(Departure::Parts{loop_, current_, manager_, status_, *server_, engines_, [this] { stop(); }});
  if (const Result<void> found = handover_.find(); !found) return found;
  await_signal();
  if (manager_.watchdog_interval()) watchdog_.arm();
  if (!handover_.has_predecessor()) {
    if (const Result<void> serving = begin_serving(); !serving) return serving;
  }
  if (options_.no_model) {
    status_ = {ServiceState::kNoModel, "started without a model", {}};
    if (announce_ready()) say("ready without a model");
  } else {
    loader_.start({handover_.take_disk_locks(), [this] { return handover_.untouched(); }}, registry_,
                  [this](Result<LoadedModels> loaded) { on_loaded(std::move(loaded)); });
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
  if (!options_.log.traces.endpoint.empty()) http.log.traces = std::make_shared<TraceExporter>(options_.log.traces, options_.data.ca_file);
  http.log_tail = logging_.tail();
  if (!options_.image_fetch.hosts.empty())
    http.fetch_image = [rules = options_.image_fetch](const std::string& url) { return images::fetch(rules, url); };
  return http;
}

// On sockets that others have passed on, or else on its own.
Result<void> Serving::begin_serving() {
  const Result<std::uint16_t> started = server_->start(handover_.take_sockets());
  if (!started) return started.error();
  const std::size_t most = net::most_passed_sockets(std::max<std::size_t>(1, options_.files.size()));
  if (const std::size_t count = server_->addresses().size(); !options_.takeover.empty() && count > most)
    return invalid_argument(fmt::format("--takeover can pass on {} addresses, and there are {}", most, count));
  for (const std::string& address : server_->addresses()) say("braid {} listening on {}", kVersion, address);
  note_ = leave_note(options_.data, server_->addresses());
  if (options_.pid_file.empty()) return {};
  Result<PidFile> pid_file = PidFile::write(options_.pid_file);
  if (!pid_file) return pid_file.error();
  pid_file_.emplace(std::move(*pid_file));
  return {};
}

void Serving::on_loaded(Result<LoadedModels> loaded) {
  if (!loaded) return fail(loaded.error());
  Engines::Hooks hooks{.on_busy = [this] { watchdog_.arm(); },
                       .on_changed =
                           [this] {
    if (!engines_ || status_.state == ServiceState::kLoading) return;
    status_.models = engines_->directory();
    tell_whether_broken();
                       }};
  Result<std::unique_ptr<Engines>> engines = Engines::create(loop_, std::move(*loaded), options_, std::move(hooks));
  if (!engines) return fail(engines.error());
  engines_ = std::move(*engines);
  for (const std::string& line : engines_->descriptions()) say("{}", line);
  asio::co_spawn(loop_, become_ready(), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);  // a bug: it ends io_context::run()
  });
}

// Ready while all that was loaded can compute.
void Serving::tell_whether_broken() {
  const std::string why = engines_->broken();
  if (!why.empty() && status_.state == ServiceState::kReady) {
    status_.state = ServiceState::kLate;
    status_.reason = why;
    is_broken_ = true;
  } else if (why.empty() && std::exchange(is_broken_, false) && status_.state == ServiceState::kLate) {
    status_ = {ServiceState::kReady, {}, status_.models, status_.host, status_.compute};
  }
}

asio::awaitable<void> Serving::become_ready() {
  if (const Result<void> adapted = co_await engines_->load_adapters(); !adapted) {
    fail(adapted.error());
    co_return;
  }
  if (!options_.no_warmup) {
    const Result<void> warm = co_await engines_->warm_up();
    if (!warm && !departure_->has_begun()) {
      fail(warm.error());
      co_return;
    }
  }
  if (departure_->has_begun()) co_return;
  if (options_.model.huge_pages != files::HugePages::kOff) grow_in_huge_pages(kStreamsMemory);
  status_ = {ServiceState::kReady, {}, engines_->directory(), &engines_->host(), &engines_->compute()};
  if (announce_ready()) say("ready after {:.2f} s", std::chrono::duration<double>(Clock::now() - started_).count());
}

// From here on this server serves what a predecessor has passed on, and can have a successor. False when it cannot serve that.
bool Serving::announce_ready() {
  if (handover_.has_predecessor()) {
    if (const Result<void> serving = begin_serving(); !serving) {
      fail(serving.error());
      return false;
    }
  }
  std::function<void()> on_free;
  if (engines_ && engines_->awaits_predecessor()) on_free = [this] { engines_->take_over(); };
  handover_.serve(
      std::move(on_free),
      [this] {
    net::Estate estate;
    estate.sockets = server_->duplicate_sockets();
    if (engines_) {
      estate.disk_locks = engines_->copy_disk_locks();
      estate.untouched = engines_->untouched();
    }
    return estate;
      },
      [this] { departure_->leave_sockets("a successor serves"); });
  if (changes_ != nullptr) {
    PeerLink::Parts parts{peer_key_, options_.data.ca_file, changes_, std::move(change_record_), [this] { server_->catch_up(); }};
    Result<std::unique_ptr<PeerLink>> link = PeerLink::begin(loop_, options_.peers, std::move(parts));
    if (!link) {
      fail(link.error());
      return false;
    }
    peers_ = std::move(*link);
  }
  manager_.notify("READY=1\nSTATUS=ready");
  return true;
}

void Serving::look_again() {
  if (engines_ != nullptr) engines_->look_again();
}

void Serving::fail(const Error& error) {
  failure_ = error;
  status_ = {ServiceState::kFailed, error.message, {}};
  loop_.stop();
}

void Serving::stop() {
  stopped_ = true;
  signals_.cancel();
  handover_.stop();
  watchdog_.stop();
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
      reopen_log(name);
      return report_state(name);
    case Wish::kNothing:
      spdlog::info("{} is nothing to this server: going on", name);
  }
}

void Serving::end(const std::string& signal) {
  if (loader_.is_loading()) {
    // Loading cannot be interrupted and holds nothing that must be saved.
    spdlog::info("{} while the model loads: stopping", signal);
    if (!handover_.has_predecessor()) server_->stop_accepting();
    pid_file_.reset();
    spdlog::shutdown();  // writes what waits
    std::_Exit(EXIT_SUCCESS);
  }
  if (peers_) peers_->end();
  const bool again = std::exchange(signalled_, true);
  if (!departure_->has_begun()) {
    handover_.stop_succession();
    if (handover_.is_shared()) return departure_->leave_sockets(signal);
    departure_->end(signal);
  } else if (!again) {
    spdlog::info("{}: still finishing {} running requests; once more stops them", signal, server_->running_requests());
  } else {
    departure_->end_now(signal);
  }
}

void Serving::reopen_log(const std::string& signal) const {
  if (!logging_.file()) return;
  if (const Result<void> opened = logging_.file()->reopen(); !opened)
    spdlog::error("{}: {}; the file of before goes on", signal, opened.error().message);
}

void Serving::report_state(const std::string& signal) const {
  spdlog::info("{}: {}; {} connections, {} requests, {}", signal, status_.reason.empty() ? "ready" : status_.reason,
               server_->open_connections(), server_->running_requests(), engines_ ? engines_->state() : "no model");
}

// What cannot be read leaves that of before as it is; the other is read nevertheless.
Result<net::Reloaded> Serving::read_again() {
  Result<net::Reloaded> reloaded = read_options_again();
  Result<std::vector<net::access::ApiKey>> keys = load_api_keys(current_.access.api_key_file, current_.access.limits);
  const std::size_t count = keys ? keys->size() : 0;
  if (keys) server_->replace_api_keys(std::move(*keys));
  const Result<void> certificate = server_->reload_tls();
  if (!certificate) return Error{ErrorCode::kIo, fmt::format("{}; the certificate of before stays", certificate.error().message), ""};
  if (!keys) return Error{ErrorCode::kIo, fmt::format("{}; the API keys of before stay", keys.error().message), ""};
  if (!reloaded) return Error{ErrorCode::kIo, fmt::format("{}; the options of before stay", reloaded.error().message), ""};
  reloaded->api_keys = count;
  return reloaded;
}

Result<net::Reloaded> Serving::read_options_again() {
  const Result<Reconfiguration> again = configure_again(current_);
  if (!again) return again.error();
  if (!again->taken.empty()) spdlog::info("options that changed: {}", fmt::join(again->taken, ", "));
  if (!again->waiting.empty()) spdlog::warn("options that changed and wait for a restart: {}", fmt::join(again->waiting, ", "));
  take_options(current_, *again);
  logging_.set_level(current_.log.level);
  server_->limit_anonymous(current_.access.limits);
  return net::Reloaded{.changed = again->taken, .waiting = again->waiting};
}

void Serving::reload() {
  const Result<net::Reloaded> reloaded = read_again();
  if (!reloaded) return spdlog::error("SIGHUP: {}", reloaded.error().message);
  spdlog::info("SIGHUP: files read again, {} API keys", reloaded->api_keys);
}

}  // namespace braid::app
