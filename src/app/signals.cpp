#include "app/signals.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <vector>

namespace braid::app {
namespace {

constexpr std::array kUsed = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1};
constexpr std::array kUnused = {SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXCPU};

bool is_free(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

std::vector<int> taken_signals() {
  std::vector<int> taken(kUsed.begin(), kUsed.end());
  std::ranges::copy_if(kUnused, std::back_inserter(taken), is_free);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal)
    if (is_free(signal)) taken.push_back(signal);
  return taken;
}

}  // namespace

Wish wish_of(int signal) {
  switch (signal) {
    case SIGINT:
    case SIGTERM:
    case SIGQUIT:
      return Wish::kEnd;
    case SIGHUP:
      return Wish::kReload;
    case SIGUSR1:
      return Wish::kReport;
    default:
      return Wish::kNothing;
  }
}

std::string signal_name(int signal) {
  if (signal >= SIGRTMIN) return fmt::format("SIGRTMIN+{}", signal - SIGRTMIN);
  if (signal == SIGIO) return "SIGIO";  // which is SIGPOLL there
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

void add_operator_signals(boost::asio::signal_set& signals) {
  static const std::vector<int> kTaken = taken_signals();  // once: afterwards they are not free any more
  for (const int signal : kTaken) signals.add(signal);
}

}  // namespace braid::app
