#include "app/logging.h"

#include "app/standard_stream.h"
#include "net/log/line.h"

#include <chrono>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <iterator>
#include <mutex>
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

// Only the logging thread writes; a reader of the stream that has stopped reading costs it a second, once.
class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `pool` is the one whose thread writes: it outlives every line. Were it shared here, its own thread could come to end it. Null where
  // nobody is told of lines that are lost. `tail` gets each line, too; null: none.
  LineSink(int file, spdlog::details::thread_pool* pool, std::shared_ptr<net::LogTail> tail)
      : file_(file), pool_(pool), tail_(std::move(tail)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (pool_ != nullptr) tell_of_losses(*pool_);
    if (!write_line(message)) ++lost_;
  }

  void flush_() override {}

 private:
  void tell_of_losses(spdlog::details::thread_pool& pool) {
    const std::size_t overrun = pool.overrun_counter();
    lost_ += overrun - std::exchange(overrun_, overrun);
    if (lost_ == 0) return;
    const std::string notice = fmt::format("{} lines of the log were lost: nobody took them in time", lost_);
    if (write_line(spdlog::details::log_msg("braid", spdlog::level::warn, notice))) lost_ = 0;
  }

  bool write_line(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    if (torn_) line.push_back('\n');
    const std::size_t begin = line.size();
    formatter_->format(message, line);
    if (tail_ != nullptr) tail_->push({line.data() + begin, line.size() - begin});
    const std::size_t written = write_patiently(file_, {line.data(), line.size()}, stuck_ ? std::chrono::milliseconds(0) : kStreamPatience);
    stuck_ = written < line.size();
    torn_ = stuck_ && (written > 0 || torn_);
    return !stuck_;
  }

  const int file_;
  spdlog::details::thread_pool* const pool_;
  const std::shared_ptr<net::LogTail> tail_;
  std::size_t overrun_ = 0;
  std::size_t lost_ = 0;
  bool stuck_ = false;  // it did not take the last line
  bool torn_ = false;   // the last line has no end
};

}  // namespace

std::unique_ptr<spdlog::formatter> line_formatter(LogFormat format) { return std::make_unique<LineFormatter>(format); }

Logging::Logging(const LogOptions& options, std::optional<LogFile> file) : file_(std::move(file)) {
  spdlog::init_thread_pool(kBufferedLines, 1);
  const auto pool = spdlog::thread_pool();
  const auto make_logger = [&pool](const char* name, spdlog::sink_ptr sink, spdlog::level::level_enum level) {
    auto logger = std::make_shared<spdlog::async_logger>(name, std::move(sink), pool, spdlog::async_overflow_policy::overrun_oldest);
    logger->set_level(level);
    return logger;
  };
  const auto tail = std::make_shared<net::LogTail>();
  tail_ = tail;
  const auto log = std::make_shared<LineSink>(file_ ? file_->number() : STDERR_FILENO, pool.get(), tail);
  log->set_formatter(line_formatter(options.format));
  const auto level = spdlog::level::from_str(options.level);
  spdlog::set_default_logger(make_logger("braid", log, level));
  requests_ = make_logger(kRequestLogger, log, level);
  const auto output = std::make_shared<LineSink>(STDOUT_FILENO, nullptr, nullptr);
  output->set_pattern("%v");
  output_ = make_logger("output", output, spdlog::level::info);
}

void Logging::set_level(const std::string& level) const {
  spdlog::default_logger()->set_level(spdlog::level::from_str(level));
  requests_->set_level(spdlog::level::from_str(level));
}

Logging::~Logging() { spdlog::shutdown(); }

}  // namespace braid::app
