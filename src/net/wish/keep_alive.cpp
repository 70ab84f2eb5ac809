#include "net/wish/keep_alive.h"

#include "net/json/fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <system_error>
#include <utility>

namespace braid::net::wish {
namespace {

// What is longer than ten years is for ever.
constexpr double kMostSeconds = 10.0 * 365 * 86'400;

KeepAlive of_seconds(double seconds) {
  if (seconds < 0.0 || seconds > kMostSeconds) return kKeepForever;
  return KeepAlive(static_cast<KeepAlive::rep>(seconds * 1e3));
}

}  // namespace

std::optional<KeepAlive> parse_keep_alive(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {
      {{"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}};
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0.0;
  while (!text.empty()) {
    const std::string_view number = text.substr(0, text.find_first_not_of("0123456789."));
    if (number.empty() || number == "." || std::ranges::count(number, '.') > 1) return std::nullopt;
    double value = 0.0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value, std::chars_format::fixed);
    if (error == std::errc::result_out_of_range) value = kMostSeconds;
    text.remove_prefix(number.size());
    const auto unit = std::ranges::find_if(kUnits, [text](const auto& one) { return text.starts_with(one.first); });
    if (unit != kUnits.end()) text.remove_prefix(unit->first.size());
    seconds += value * (unit != kUnits.end() ? unit->second : 1.0);
  }
  return is_negative && seconds > 0.0 ? kKeepForever : of_seconds(seconds);
}

Result<std::optional<KeepAlive>> read_keep_alive(const Value& value, const std::string& path) {
  if (value.is_null()) return std::optional<KeepAlive>();
  if (const auto number = value.number()) return std::optional<KeepAlive>(of_seconds(*number));
  const auto* text = value.get_if<std::string>();
  if (text == nullptr) return json::wrong_type(path, "a duration", value);
  const std::optional<KeepAlive> parsed = parse_keep_alive(*text);
  if (!parsed) return invalid_argument(fmt::format("'{}' is no duration, such as 5m, 1h30m or -1", path), path);
  return parsed;
}

Result<std::optional<KeepAlive>> keep_alive_of(const Value& body) {
  const Value* value = body.find("keep_alive");
  if (value == nullptr) return std::optional<KeepAlive>();
  return read_keep_alive(*value, "keep_alive");
}

}  // namespace braid::net::wish
