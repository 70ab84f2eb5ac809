#include "app/models/transfer_meter.h"

#include "app/units.h"
#include "braid/printable.h"
#include "net/json/write_value.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace braid::app {
namespace {

constexpr std::size_t kBarLength = 24;

volatile std::sig_atomic_t g_interrupted = 0;  // by a signal handler, which can reach nothing else

}  // namespace

TransferMeter::TransferMeter(bool json) : json_(json), terminal_(::isatty(STDERR_FILENO) == 1 && !json) {
  g_interrupted = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  ::sigaction(SIGINT, &action, &before_);
}

TransferMeter::~TransferMeter() {
  if (line_open_) fmt::print(stderr, "\n");
  ::sigaction(SIGINT, &before_, nullptr);
}

bool TransferMeter::show(const TransferProgress& progress) {
  if (json_) {
    ValueDict line{{"status", progress.status}};
    if (!progress.digest.empty()) line.emplace_back("digest", progress.digest);
    if (progress.total > 0) line.emplace_back("total", static_cast<std::int64_t>(progress.total));
    if (progress.completed > 0) line.emplace_back("completed", static_cast<std::int64_t>(progress.completed));
    std::string text;
    net::json::append_value(text, std::move(line));
    fmt::print("{}\n", text);
    std::fflush(stdout);
  } else {
    show_line(progress);
  }
  return g_interrupted == 0;
}

void TransferMeter::show_line(const TransferProgress& progress) {
  const bool is_new = progress.status != status_;
  if (is_new && line_open_) fmt::print(stderr, "\n");
  if (is_new) {
    status_ = progress.status;
    begun_at_ = progress.completed;
    begun_ = Clock::now();
    line_open_ = terminal_;
  }
  if (!terminal_) {
    if (is_new) fmt::print(stderr, "{}\n", printable(progress.status));
    return;
  }
  fmt::print(stderr, "\r\x1b[K{}", printable(progress.status));
  if (progress.total == 0) return;
  const double share = static_cast<double>(std::min(progress.completed, progress.total)) / static_cast<double>(progress.total);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarLength));
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  const double rate = seconds > 0.5 ? static_cast<double>(progress.completed - std::min(begun_at_, progress.completed)) / seconds : 0.0;
  fmt::print(stderr, " {:3.0f}% [{}{}] {}/{}{}", share * 100, std::string(filled, '='), std::string(kBarLength - filled, ' '),
             format_size(progress.completed), format_size(progress.total),
             rate > 0 ? fmt::format(" {}/s", format_size(static_cast<std::uint64_t>(rate))) : "");
  std::fflush(stderr);
}

}  // namespace braid::app
