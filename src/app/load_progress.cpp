#include "app/load_progress.h"

#include "app/standard_stream.h"
#include "app/units.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace braid::app {
namespace {

constexpr std::chrono::milliseconds kBarInterval{50};
constexpr std::chrono::seconds kLogInterval{5};
constexpr std::uint64_t kBarWidth = 30;
constexpr std::chrono::seconds kManagerInterval{1};
constexpr std::chrono::seconds kPatience{90};  // without progress, from then on: what systemd grants by itself

}  // namespace

LoadProgress::LoadProgress(const ServiceManager* manager)
    : manager_(manager), terminal_(isatty(STDERR_FILENO) == 1), next_(Clock::now() + (terminal_ ? Clock::duration::zero() : kLogInterval)) {
  if (manager_ != nullptr) tell_manager("model", 0.0, Clock::now());
}

LoadProgress::~LoadProgress() {
  if (line_open_) write_patiently(STDERR_FILENO, "\r\033[K", {});
}

void LoadProgress::tell_manager(std::string_view what, double share, Clock::time_point now) {
  tell_next_ = now + kManagerInterval;
  manager_->notify(
      fmt::format("EXTEND_TIMEOUT_USEC={}\nSTATUS=loading {}: {:.0f}%", std::chrono::microseconds(kPatience).count(), what, share * 100.0));
}

void LoadProgress::show(std::string_view what, std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (total == 0) return;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  if (manager_ != nullptr && now >= tell_next_) tell_manager(what, share, now);
  if (now < next_) return;
  if (terminal_) {
    next_ = now + kBarInterval;
    line_open_ = true;
    const auto filled = static_cast<std::uint64_t>(share * static_cast<double>(kBarWidth));
    write_patiently(STDERR_FILENO,
                    fmt::format("\r\033[K{:10} [{:#<{}}{:<{}}] {:3.0f}% of {}", what, "", filled, "", kBarWidth - filled, share * 100.0,
                                format_size(total)),
                    {});
  } else {
    next_ = now + kLogInterval;
    spdlog::info("loading {}: {:.0f}% of {}", what, share * 100.0, format_size(total));
  }
}

}  // namespace braid::app
