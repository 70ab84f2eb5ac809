#include "app/commands/commands.h"
#include "app/logging.h"
#include "app/serving.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/core.h>
#include <iterator>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <system_error>

namespace braid::app {
namespace {

// Each client takes a file; the usual soft limit of 1024 is far below what the server can hold.
void raise_open_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) spdlog::warn("cannot raise the limit of open files");
  getrlimit(RLIMIT_NOFILE, &files);
  std::error_code ignored;
  const auto used = std::distance(std::filesystem::directory_iterator("/proc/self/fd", ignored), std::filesystem::directory_iterator());
  fmt::print("open files: {} at most, {} in use; each connection takes one\n", files.rlim_cur, used);
  std::fflush(stdout);
}

// What they stand for comes back as an error where it belongs: a write to a file over its limit, or to a log that nobody reads any more.
void ignore_write_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

// So that one more does not kill while all is taken down and the log's last lines are written: never given back.
void hold_signals() {
  static auto* const loop = new boost::asio::io_context(1);
  static const auto* const held = new boost::asio::signal_set(*loop, SIGINT, SIGTERM, SIGHUP);
  static_cast<void>(held);
}

int serve(const ServeOptions& options, const Logging& logging) {
  boost::asio::io_context loop(1);
  Serving serving(loop, options, logging.requests());
  if (const Result<void> started = serving.start(); !started) return report(started.error());
  loop.run();
  return serving.failure() ? report(*serving.failure()) : EXIT_SUCCESS;
}

}  // namespace

int run_command(const ServeOptions& options) {
  const Logging logging(options.log);
  raise_open_files();
  ignore_write_signals();
  hold_signals();
  return serve(options, logging);
}

}  // namespace braid::app
