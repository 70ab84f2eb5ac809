#include "text/jinja/operators.h"

#include "text/jinja/text_format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace braid::text::jinja {
namespace {

constexpr std::string_view kOverflow = "an integer is out of range";

std::string_view symbol(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    case Operator::kPower:
      return "**";
    case Operator::kConcat:
      return "~";
    case Operator::kEqual:
      return "==";
    case Operator::kNotEqual:
      return "!=";
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterEqual:
      return ">=";
    case Operator::kIn:
      return "in";
    case Operator::kNotIn:
      return "not in";
  }
  return "";
}

// Python rounds a quotient down and gives the remainder the divisor's sign.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0)); }
double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Object integer_power(Runtime& runtime, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return runtime.fail("division by zero");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  if (base >= -1 && base <= 1) return base == -1 && exponent % 2 == 0 ? std::int64_t{1} : (exponent == 0 ? result : base);
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result)) return runtime.fail(kOverflow);
  return result;
}

Object integer_arithmetic(Runtime& runtime, Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  const bool divides = op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) return runtime.fail("division by zero");
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kDivide:
      return static_cast<double>(a) / static_cast<double>(b);
    case Operator::kFloorDivide:
      overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
      if (!overflow) result = floor_divide(a, b);
      break;
    case Operator::kModulo:
      result = b == -1 ? 0 : a - b * floor_divide(a, b);
      break;
    case Operator::kPower:
      return integer_power(runtime, a, b);
    case Operator::kConcat:
    case Operator::kEqual:
    case Operator::kNotEqual:
    case Operator::kLess:
    case Operator::kLessEqual:
    case Operator::kGreater:
    case Operator::kGreaterEqual:
    case Operator::kIn:
    case Operator::kNotIn:
      return runtime.fail(fmt::format("'{}' is not arithmetic", symbol(op)));
  }
  if (overflow) return runtime.fail(kOverflow);
  return result;
}

Object float_power(Runtime& runtime, double base, double exponent) {
  if (base == 0 && exponent < 0) return runtime.fail("division by zero");
  if (base < 0 && exponent != std::floor(exponent)) return runtime.fail("a power of a negative number is not real");
  return std::pow(base, exponent);
}

Object float_arithmetic(Runtime& runtime, Operator op, double a, double b) {
  const bool divides = op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
  if (divides && b == 0) return runtime.fail("division by zero");
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kDivide:
      return a / b;
    case Operator::kFloorDivide:
      return std::floor(a / b);
    case Operator::kModulo:
      return modulo(a, b);
    case Operator::kPower:
      return float_power(runtime, a, b);
    case Operator::kConcat:
    case Operator::kEqual:
    case Operator::kNotEqual:
    case Operator::kLess:
    case Operator::kLessEqual:
    case Operator::kGreater:
    case Operator::kGreaterEqual:
    case Operator::kIn:
    case Operator::kNotIn:
      break;
  }
  return runtime.fail(fmt::format("'{}' is not arithmetic", symbol(op)));
}

Object repeat(Runtime& runtime, const Object& value, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const auto fits = [&](std::size_t size) { return size == 0 || count <= runtime.bytes_left() / size; };
  if (const auto* string = value.text()) {
    if (!fits(string->size())) return runtime.fail("a repeated string is too large");
    std::string result;
    result.reserve(string->size() * count);
    for (std::size_t i = 0; i < count && !string->empty(); ++i) result += *string;
    return runtime.text(std::move(result));
  }
  const auto& list = *value.sequence();
  if (!fits(list.items.size() * sizeof(Object))) return runtime.fail("a repeated list is too large");
  std::vector<Object> items;
  items.reserve(list.items.size() * count);
  for (std::size_t i = 0; i < count && !list.items.empty(); ++i) items.insert(items.end(), list.items.begin(), list.items.end());
  return runtime.sequence(std::move(items), list.kind);
}

bool is_list_or_tuple(const Object& value) { return value.sequence() != nullptr && value.sequence()->kind <= Sequence::Kind::kTuple; }

Object join(Runtime& runtime, const Object& left, const Object& right) {
  if (left.text() != nullptr) return runtime.text(*left.text() + *right.text());
  auto items = left.sequence()->items;
  items.insert(items.end(), right.sequence()->items.begin(), right.sequence()->items.end());
  return runtime.sequence(std::move(items), left.sequence()->kind);
}

bool joins(const Object& left, const Object& right) {
  if (left.text() != nullptr && right.text() != nullptr) return true;
  return is_list_or_tuple(left) && is_list_or_tuple(right) && left.sequence()->kind == right.sequence()->kind;
}

bool contains(Runtime& runtime, const Object& container, const Object& value) {
  if (const auto* string = container.text()) {
    if (value.text() != nullptr) return string->find(*value.text()) != std::string::npos;
    if (value.is_undefined()) {
      runtime.fail_undefined(value);
    } else {
      runtime.fail(fmt::format("'in' a string needs a string, not {}", type_name(value)));
    }
    return false;
  }
  if (const auto* members = container.dict()) {
    if (!is_key(value)) runtime.fail(fmt::format("a {} cannot be the key of a dict", type_name(value)));
    return members->find(value) != nullptr;
  }
  const auto items = runtime.iterate(container);
  return std::any_of(items.begin(), items.end(), [&](const Object& item) { return runtime.equal(item, value); });
}

}  // namespace

Object apply_binary(Runtime& runtime, Operator op, const Object& left, const Object& right) {
  if (op == Operator::kConcat) return runtime.text(runtime.to_text(left) + runtime.to_text(right));
  if (op == Operator::kModulo && left.text() != nullptr) return percent_format(runtime, *left.text(), right);
  if (left.is_undefined() || right.is_undefined()) return runtime.fail_undefined(left.is_undefined() ? left : right);
  std::int64_t a = 0;
  std::int64_t b = 0;
  const bool left_integer = left.to_integer(a);
  const bool right_integer = right.to_integer(b);
  if (left_integer && right_integer) return integer_arithmetic(runtime, op, a, b);
  if (left.is_number() && right.is_number()) return float_arithmetic(runtime, op, left.to_double(), right.to_double());
  if (op == Operator::kAdd && joins(left, right)) return join(runtime, left, right);
  if (op == Operator::kMultiply && right_integer && (left.text() != nullptr || is_list_or_tuple(left))) return repeat(runtime, left, b);
  if (op == Operator::kMultiply && left_integer && (right.text() != nullptr || is_list_or_tuple(right))) return repeat(runtime, right, a);
  return runtime.fail(fmt::format("'{}' does not take a {} and a {}", symbol(op), type_name(left), type_name(right)));
}

bool apply_comparison(Runtime& runtime, Operator op, const Object& left, const Object& right) {
  switch (op) {
    case Operator::kEqual:
      return runtime.equal(left, right);
    case Operator::kNotEqual:
      return !runtime.equal(left, right);
    case Operator::kIn:
      return contains(runtime, right, left);
    case Operator::kNotIn:
      return !contains(runtime, right, left);
    case Operator::kLess:
      return runtime.order(left, right) == -1;
    case Operator::kGreater:
      return runtime.order(left, right) == 1;
    case Operator::kLessEqual: {
      const int order = runtime.order(left, right);
      return order == -1 || order == 0;
    }
    case Operator::kGreaterEqual: {
      const int order = runtime.order(left, right);
      return order == 1 || order == 0;
    }
    case Operator::kAdd:
    case Operator::kSubtract:
    case Operator::kMultiply:
    case Operator::kDivide:
    case Operator::kFloorDivide:
    case Operator::kModulo:
    case Operator::kPower:
    case Operator::kConcat:
      break;
  }
  return false;
}

// Python's + makes an integer of a bool.
Object positive(Runtime& runtime, const Object& value) {
  if (value.is_undefined()) return runtime.fail_undefined(value);
  if (value.is_float()) return value;
  return runtime.to_integer(value, "what '+' stands before");
}

Object negate(Runtime& runtime, const Object& value) {
  if (value.is_undefined()) return runtime.fail_undefined(value);
  if (value.is_float()) return -value.to_double();
  return integer_arithmetic(runtime, Operator::kSubtract, 0, runtime.to_integer(value, "what '-' negates"));
}

}  // namespace braid::text::jinja
