#include "app/load_progress.h"

#include "app/units.h"

#include <cstdio>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace braid::app {
namespace {

constexpr std::chrono::milliseconds kBarInterval{50};
constexpr std::chrono::seconds kLogInterval{5};
constexpr std::uint64_t kBarWidth = 30;

}  // namespace

LoadProgress::LoadProgress()
    : terminal_(isatty(STDERR_FILENO) == 1), next_(Clock::now() + (terminal_ ? Clock::duration::zero() : kLogInterval)) {}

LoadProgress::~LoadProgress() {
  if (line_open_) fmt::print(stderr, "\r\033[K");
}

void LoadProgress::show(std::string_view what, std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (now < next_ || total == 0) return;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  if (terminal_) {
    next_ = now + kBarInterval;
    line_open_ = true;
    const auto filled = static_cast<std::uint64_t>(share * static_cast<double>(kBarWidth));
    fmt::print(stderr, "\r\033[K{:10} [{:#<{}}{:<{}}] {:3.0f}% of {}", what, "", filled, "", kBarWidth - filled, share * 100.0,
               format_size(total));
    std::fflush(stderr);
  } else {
    next_ = now + kLogInterval;
    spdlog::info("loading {}: {:.0f}% of {}", what, share * 100.0, format_size(total));
  }
}

}  // namespace braid::app
