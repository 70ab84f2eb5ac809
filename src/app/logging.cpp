#include "app/logging.h"

#include "net/log/line.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <iterator>
#include <mutex>
#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace braid::app {
namespace {

using net::LogFormat;

constexpr std::size_t kBufferedLines = 4096;
constexpr std::size_t kWriteBytes = 4096;  // PIPE_BUF: what poll() promises of a pipe
constexpr int kPatienceMs = 1000;

std::string_view name_of(spdlog::level::level_enum level) {
  const spdlog::string_view_t name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(message.time.time_since_epoch()).count();
    const std::string time = fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(milliseconds / 1000), milliseconds % 1000);
    const std::string_view payload(message.payload.data(), message.payload.size());
    const bool is_line = std::string_view(message.logger_name.data(), message.logger_name.size()) == kRequestLogger;
    const std::string text = is_line ? std::string(payload) : net::LogLine(format_, payload).text();
    const auto level = name_of(message.level);
    if (format_ == LogFormat::kText) {
      fmt::format_to(std::back_inserter(out), "{} {} {}\n", time, level, text);
    } else {
      fmt::format_to(std::back_inserter(out),
                     R"({{"time":"{}","level":"{}",{}}})"
                     "\n",
                     time, level, text);
    }
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LineFormatter>(format_); }

 private:
  LogFormat format_;
};

// Only the logging thread writes; a reader of standard error that has stopped reading costs it a second, once.
class StandardError final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `pool` is the one whose thread writes: it outlives every line. Were it shared here, its own thread could come to end it.
  explicit StandardError(spdlog::details::thread_pool& pool) : pool_(pool) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::size_t overrun = pool_.overrun_counter();
    lost_ += overrun - std::exchange(overrun_, overrun);
    if (lost_ > 0) {
      const std::string notice = fmt::format("{} lines of the log were lost: nobody took them in time", lost_);
      if (write_line(spdlog::details::log_msg("braid", spdlog::level::warn, notice))) lost_ = 0;
    }
    if (!write_line(message)) ++lost_;
  }

  void flush_() override {}

 private:
  bool write_line(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    if (torn_) line.push_back('\n');
    formatter_->format(message, line);
    torn_ = false;
    std::string_view rest(line.data(), line.size());
    while (!rest.empty()) {
      pollfd ready{STDERR_FILENO, POLLOUT, 0};
      stuck_ = ::poll(&ready, 1, stuck_ ? 0 : kPatienceMs) <= 0;
      const ssize_t written = stuck_ ? -1 : ::write(STDERR_FILENO, rest.data(), std::min(rest.size(), kWriteBytes));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        torn_ = rest.size() < line.size();
        return false;
      }
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  spdlog::details::thread_pool& pool_;
  std::size_t overrun_ = 0;
  std::size_t lost_ = 0;
  bool stuck_ = false;  // it took nothing last time
  bool torn_ = false;   // the last line has no end
};

}  // namespace

std::unique_ptr<spdlog::formatter> line_formatter(LogFormat format) { return std::make_unique<LineFormatter>(format); }

Logging::Logging(const LogOptions& options) {
  spdlog::init_thread_pool(kBufferedLines, 1);
  const auto sink = std::make_shared<StandardError>(*spdlog::thread_pool());
  sink->set_formatter(line_formatter(options.format));
  const auto make_logger = [&](const char* name) {
    auto logger = std::make_shared<spdlog::async_logger>(name, sink, spdlog::thread_pool(), spdlog::async_overflow_policy::overrun_oldest);
    logger->set_level(spdlog::level::from_str(options.level));
    return logger;
  };
  spdlog::set_default_logger(make_logger("braid"));
  requests_ = make_logger(kRequestLogger);
}

Logging::~Logging() { spdlog::shutdown(); }

}  // namespace braid::app
