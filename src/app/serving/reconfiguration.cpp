#include "app/serving/reconfiguration.h"

#include "app/command_line.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace braid::app {
namespace {

constexpr std::array<std::string_view, 3> kLimits = {"requests-per-minute", "tokens-per-minute", "concurrent-requests"};
constexpr std::array<std::string_view, 3> kOthers = {"log-level", "drain-delay", "drain-timeout"};

bool may_change(std::string_view key) {
  return std::ranges::find(kLimits, key) != kLimits.end() || std::ranges::find(kOthers, key) != kOthers.end();
}

}  // namespace

Result<Reconfiguration> configure_again(const ServeOptions& before) {
  std::vector<const char*> argv;
  for (const std::string& argument : before.arguments) argv.push_back(argument.c_str());
  Command parsed = parse_command_line(static_cast<int>(argv.size()), argv.data());
  if (const auto* farewell = std::get_if<Farewell>(&parsed)) return invalid_argument(farewell->text.substr(0, farewell->text.find('\n')));
  Reconfiguration again;
  again.options = std::move(std::get<ServeOptions>(parsed));
  for (const auto& [key, text] : again.options.settings) {
    const auto old = before.settings.find(key);
    if (old != before.settings.end() && old->second == text) continue;
    (may_change(key) ? again.taken : again.waiting).push_back(key);
  }
  return again;
}

void take_options(ServeOptions& current, const Reconfiguration& again) {
  const auto takes = [&](std::string_view key) { return std::ranges::find(again.taken, key) != again.taken.end(); };
  if (takes("log-level")) current.log.level = again.options.log.level;
  if (takes("drain-delay")) current.drain_delay = again.options.drain_delay;
  if (takes("drain-timeout")) current.drain_timeout = again.options.drain_timeout;
  if (std::ranges::any_of(kLimits, takes)) current.access.limits = again.options.access.limits;
  for (const std::string& key : again.taken) current.settings[key] = again.options.settings.at(key);
}

}  // namespace braid::app
