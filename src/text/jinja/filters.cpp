// The table of filters, and those about one value.
#include "text/jinja/filters.h"

#include "text/jinja/object_text.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

Object run_default(Runtime&, Arguments& arguments) {
  const bool by_truth = arguments.given(2) && arguments[2].truth();
  const bool absent = arguments[0].is_undefined() || (by_truth && !arguments[0].truth());
  if (!absent) return arguments[0];
  return arguments.given(1) ? arguments[1] : Object::from_text("");
}

Object run_length(Runtime& runtime, Arguments& arguments) { return static_cast<std::int64_t>(runtime.length(arguments[0])); }
Object run_string(Runtime& runtime, Arguments& arguments) {
  return arguments[0].text() != nullptr ? arguments[0] : runtime.text(runtime.to_text(arguments[0]));
}

// int() and float() are Python's: they take the whole text but for white space around it, and single underscores between digits.
template <class Belongs>
bool erase_underscores(std::string& digits, Belongs belongs) {
  for (std::size_t i = 0; i < digits.size(); ++i)
    if (digits[i] == '_' && (i == 0 || i + 1 == digits.size() || !belongs(digits[i - 1]) || !belongs(digits[i + 1]))) return false;
  std::erase(digits, '_');
  return true;
}

bool parse_integer(std::string_view text, int base, std::int64_t& value) {
  std::string digits(strip(text, Side::kBoth));
  const auto belongs = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (!erase_underscores(digits, belongs)) return false;
  const bool negative = !digits.empty() && digits[0] == '-';
  std::string_view left = digits;
  if (!left.empty() && (left[0] == '-' || left[0] == '+')) left.remove_prefix(1);
  const auto prefix = left.substr(0, 2);
  const bool prefixed = (base == 16 && (prefix == "0x" || prefix == "0X")) || (base == 8 && (prefix == "0o" || prefix == "0O")) ||
                        (base == 2 && (prefix == "0b" || prefix == "0B"));
  if (prefixed) left.remove_prefix(2);
  if (left.empty() || left[0] == '-') return false;
  const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), value, base);
  if (negative) value = -value;
  return error == std::errc() && end == left.data() + left.size();
}

bool parse_float(std::string_view text, double& value) {
  std::string digits(strip(text, Side::kBoth));
  if (!erase_underscores(digits, [](char c) { return c >= '0' && c <= '9'; })) return false;
  if (digits.starts_with("+-") || digits.find('(') != std::string::npos) return false;  // nan(…) is C's
  if (digits.starts_with('+')) digits.erase(0, 1);
  return read_float(digits, value);
}

Object from_double(Runtime& runtime, double value, const Object& fallback) {
  constexpr double kBound = 9.2233720368547e18;
  if (std::abs(value) < kBound) return static_cast<std::int64_t>(value);
  return std::isfinite(value) ? runtime.fail("whole numbers beyond 64 bits are not supported") : fallback;
}

Object run_int(Runtime& runtime, Arguments& arguments) {
  const Object& value = arguments[0];
  const Object fallback = arguments.given(1) ? arguments[1] : Object(std::int64_t{0});
  if (value.is_undefined()) return runtime.fail_undefined(value);
  std::int64_t integer = 0;
  if (value.to_integer(integer)) return integer;
  if (value.is_float()) return from_double(runtime, value.to_double(), fallback);
  const auto* text = value.text();
  if (text == nullptr) return fallback;
  const auto base = arguments.given(2) ? runtime.to_integer(arguments[2], "the base of int") : 10;
  if (base < 2 || base > 36) return fallback;
  if (parse_integer(*text, static_cast<int>(base), integer)) return integer;
  double number = 0;
  return parse_float(*text, number) ? from_double(runtime, number, fallback) : fallback;
}

Object run_float(Runtime& runtime, Arguments& arguments) {
  const Object& value = arguments[0];
  if (value.is_undefined()) return runtime.fail_undefined(value);
  if (value.is_number()) return value.to_double();
  double number = 0;
  if (value.text() != nullptr && parse_float(*value.text(), number)) return number;
  return arguments.given(1) ? arguments[1] : Object(0.0);
}

Object run_abs(Runtime& runtime, Arguments& arguments) {
  if (arguments[0].is_undefined()) return runtime.fail_undefined(arguments[0]);
  if (arguments[0].is_float()) return std::abs(arguments[0].to_double());
  const std::int64_t value = runtime.to_integer(arguments[0], "the value of abs");
  return value < 0 ? negate(runtime, arguments[0]) : Object(value);
}

// Rounds as Python does: to the nearest decimal, half to even on the exact value. Also for digits left of the point.
double round_decimal(double value, int precision) {
  if (precision >= 0) return std::strtod(fmt::format("{:.{}f}", value, precision).c_str(), nullptr);
  const double scale = std::pow(10.0, -precision);
  return std::nearbyint(value / scale) * scale;
}

Object run_round(Runtime& runtime, Arguments& arguments) {
  if (arguments[0].is_undefined()) return runtime.fail_undefined(arguments[0]);
  if (!arguments[0].is_number()) return runtime.fail(fmt::format("round needs a number, not {}", type_name(arguments[0])));
  const auto precision = static_cast<int>(
      std::clamp<std::int64_t>(arguments.given(1) ? runtime.to_integer(arguments[1], "the precision of round") : 0, -300, 300));
  const std::string method = arguments.given(2) ? runtime.to_text(arguments[2]) : "common";
  const double value = arguments[0].to_double();
  const double scale = std::pow(10.0, precision);
  if (method == "ceil") return std::ceil(value * scale) / scale;
  if (method == "floor") return std::floor(value * scale) / scale;
  if (method != "common") return runtime.fail("the method of round is common, ceil or floor");
  const double rounded = round_decimal(value, precision);
  if (arguments[0].is_float()) return rounded;
  const Object whole = runtime.to_integer(arguments[0], "the value of round");
  return precision >= 0 ? whole : from_double(runtime, rounded, whole);
}

Object run_tojson(Runtime& runtime, Arguments& arguments) {
  JsonStyle style;
  style.ascii = arguments.given(1) && arguments[1].truth();
  style.pretty = arguments.given(2) && !arguments[2].is_none();
  style.sort_keys = arguments.given(4) && arguments[4].truth();
  if (style.pretty) {
    const auto* text = arguments[2].text();
    const auto width = text != nullptr ? 0 : std::clamp<std::int64_t>(runtime.to_integer(arguments[2], "the indent of tojson"), 0, 64);
    style.indent = text != nullptr ? text->substr(0, 64) : std::string(static_cast<std::size_t>(width), ' ');
    style.item_separator = ",";
  }
  if (arguments.given(3) && !arguments[3].is_none()) {
    const auto separators = runtime.iterate(arguments[3]);
    if (separators.size() != 2) return runtime.fail("the separators of tojson are two strings");
    style.item_separator = runtime.to_text(separators[0]);
    style.key_separator = runtime.to_text(separators[1]);
  }
  std::string out;
  if (!append_json(out, arguments[0], style, runtime.bytes_left()))
    return runtime.fail(fmt::format("a value of type {} has no JSON form, or is too large", type_name(arguments[0])));
  return runtime.text(std::move(out));
}

Object run_attr(Runtime& runtime, Arguments& arguments) {
  const auto* name = arguments[1].text();
  if (name == nullptr) return runtime.fail("attr needs a string");
  return get_own_attribute(runtime, arguments[0], *name);
}

constexpr Native kFilters[] = {
    {"abs", "value", run_abs},
    {"attr", "value name", run_attr},
    {"count", "value", run_length},
    {"d", "value default_value? boolean?", run_default},
    {"default", "value default_value? boolean?", run_default},
    {"float", "value default?", run_float},
    {"int", "value default? base?", run_int},
    {"length", "value", run_length},
    {"round", "value precision? method?", run_round},
    {"string", "value", run_string},
    {"tojson", "value ensure_ascii? indent? separators? sort_keys?", run_tojson},
};

}  // namespace

const Native* find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_sequence_filter, find_selection_filter, find_web_filter})
    if (const auto* native = find(name)) return native;
  return find_in(kFilters, name);
}

}  // namespace braid::text::jinja
