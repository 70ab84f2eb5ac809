#include "app/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <system_error>

namespace braid::app {
namespace {

struct Unit {
  std::string_view name;  // upper case
  double factor;
};

constexpr double kKi = 1024.0;
constexpr std::array kSizeUnits = {
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"K", kKi},
    Unit{"KIB", kKi},
    Unit{"KB", 1e3},
    Unit{"M", kKi* kKi},
    Unit{"MIB", kKi* kKi},
    Unit{"MB", 1e6},
    Unit{"G", kKi* kKi* kKi},
    Unit{"GIB", kKi* kKi* kKi},
    Unit{"GB", 1e9},
    Unit{"T", kKi* kKi* kKi* kKi},
    Unit{"TIB", kKi* kKi* kKi* kKi},
    Unit{"TB", 1e12},
};
constexpr std::array kTimeUnits = {Unit{"", 1e3}, Unit{"MS", 1}, Unit{"S", 1e3}, Unit{"M", 6e4}, Unit{"H", 3.6e6}, Unit{"D", 8.64e7}};

constexpr double kLargest = 9e15;              // exact in a double, far beyond any memory or patience
constexpr std::chrono::days kLongest{36'500};  // added to a clock's time in nanoseconds, it stays below 2^63

// A number of at least 0 and one of `units`, multiplied; nullopt when `text` is anything else or too large.
std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0.0) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  std::string name(rest);
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  for (const Unit& unit : units)
    if (unit.name == name) return number * unit.factor <= kLargest ? std::optional(number * unit.factor) : std::nullopt;
  return std::nullopt;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto bytes = parse_quantity(text, kSizeUnits);
  if (!bytes) return invalid_argument(fmt::format("'{}' is not a size: write a number and a unit, such as 512M or 4GiB", text));
  return static_cast<std::uint64_t>(*bytes);
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto ms = parse_quantity(text, kTimeUnits);
  if (!ms) return invalid_argument(fmt::format("'{}' is not a duration: write a number and a unit, such as 500ms, 30s or 2m", text));
  const std::chrono::milliseconds duration(static_cast<std::int64_t>(*ms));
  if (duration > kLongest) return invalid_argument(fmt::format("'{}' is too long: {}d are the most", text, kLongest.count()));
  return duration;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000.0 && unit + 1 < kNames.size()) {
    value /= kKi;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 100.0 ? 0 : value >= 10.0 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kNames[unit]);
}

}  // namespace braid::app
