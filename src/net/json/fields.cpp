#include "net/json/fields.h"

#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <variant>

namespace braid::net::json {

std::string_view type_name(const Value& value) {
  struct Names {
    std::string_view operator()(std::nullptr_t) const { return "null"; }
    std::string_view operator()(bool) const { return "a boolean"; }
    std::string_view operator()(std::int64_t) const { return "an integer"; }
    std::string_view operator()(double) const { return "a number"; }
    std::string_view operator()(const LongInteger&) const { return "an integer"; }
    std::string_view operator()(const std::string&) const { return "a string"; }
    std::string_view operator()(const ValueList& list) const { return list.empty() ? "an empty array" : "an array"; }
    std::string_view operator()(const ValueDict&) const { return "an object"; }
  };
  return std::visit(Names(), value.storage());
}

Error wrong_type(const std::string& path, std::string_view expected, const Value& got) {
  return invalid_argument(fmt::format("'{}' must be {}, not {}", path, expected, type_name(got)), path);
}

Result<bool> read_bool(const Value& value, const std::string& path) {
  if (const auto* flag = value.get_if<bool>()) return *flag;
  return wrong_type(path, "a boolean", value);
}

Result<std::int64_t> read_integer(const Value& value, const std::string& path, std::int64_t low, std::int64_t high) {
  constexpr double kBeyond = 0x1p63;
  const auto* integer = value.get_if<std::int64_t>();
  const auto* real = value.get_if<double>();
  const bool whole = real != nullptr && std::trunc(*real) == *real;  // 16.0 is 16
  if (value.get_if<LongInteger>() != nullptr || (whole && std::fabs(*real) >= kBeyond))
    return invalid_argument(fmt::format("'{}' must be an integer of 64 bits with a sign", path), path);
  if (integer == nullptr && !whole) return wrong_type(path, "an integer", value);
  const std::int64_t number = integer != nullptr ? *integer : static_cast<std::int64_t>(*real);
  if (number >= low && number <= high) return number;
  if (high == std::numeric_limits<std::int64_t>::max())
    return invalid_argument(fmt::format("'{}' is {}, but must be at least {}", path, number, low), path);
  return invalid_argument(fmt::format("'{}' is {}, but must be from {} to {}", path, number, low, high), path);
}

Result<float> read_number(const Value& value, const std::string& path, float low, float high) {
  const std::optional<double> number = value.number();
  if (!number) return wrong_type(path, "a number", value);
  if (*number >= low && *number <= high) return static_cast<float>(*number);
  return invalid_argument(fmt::format("'{}' is {}, but must be from {} to {}", path, *number, low, high), path);
}

Result<std::string> read_string(const Value& value, const std::string& path) {
  if (const auto* text = value.get_if<std::string>()) return *text;
  return wrong_type(path, "a string", value);
}

std::string at_index(const std::string& path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

std::string at_key(const std::string& path, std::string_view key) { return fmt::format("{}.{}", path, key); }

}  // namespace braid::net::json
