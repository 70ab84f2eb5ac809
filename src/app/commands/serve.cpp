#include "app/commands/commands.h"
#include "app/log_file.h"
#include "app/logging.h"
#include "app/serving/serving.h"
#include "app/signals.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <spdlog/spdlog.h>
#include <string>
#include <sys/resource.h>
#include <system_error>
#include <utility>

namespace braid::app {
namespace {

// Each client takes a file; the usual soft limit of 1024 is far below what the server can hold.
void raise_open_files(const Logging& logging) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) spdlog::warn("cannot raise the limit of open files");
  getrlimit(RLIMIT_NOFILE, &files);
  std::error_code unknown;  // without /proc
  const std::filesystem::directory_iterator open("/proc/self/fd", unknown);
  const std::string used = unknown ? "" : fmt::format(", {} in use", std::distance(open, std::filesystem::directory_iterator()));
  logging.output()->info("open files: {} at most{}; each connection takes one", files.rlim_cur, used);
}

// What they stand for comes back as an error where it belongs: a write to a file over its limit, or to a log that nobody reads any more.
void ignore_write_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

// So that one more does not kill while all is taken down and the log's last lines are written: never given back.
void hold_signals() {
  static auto* const loop = new boost::asio::io_context(1);
  static auto* const held = new boost::asio::signal_set(*loop);
  add_operator_signals(*held);
}

int serve(const ServeOptions& options, const Logging& logging) {
  boost::asio::io_context loop(1);
  Serving serving(loop, options, logging);
  if (const Result<void> started = serving.start(); !started) return report(started.error());
  loop.run();
  return serving.failure() ? report(*serving.failure()) : EXIT_SUCCESS;
}

}  // namespace

int run_command(const ServeOptions& options) {
  ignore_write_signals();
  hold_signals();
  std::optional<LogFile> file;
  if (!options.log.file.empty()) {
    Result<LogFile> opened = LogFile::open(options.log.file);
    if (!opened) return report(opened.error());
    file = std::move(*opened);
  }
  const Logging logging(options.log, std::move(file));
  for (const std::string& doubt : options.doubts) spdlog::warn("{}", doubt);
  raise_open_files(logging);
  return serve(options, logging);
}

}  // namespace braid::app
