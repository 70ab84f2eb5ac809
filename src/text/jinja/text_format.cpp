#include "text/jinja/text_format.h"

#include "text/jinja/object_text.h"
#include "text/jinja/unicode_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace braid::text::jinja {
namespace {

constexpr int kMaxWidth = 1000;

struct Style {
  std::string fill = " ";
  char align = 0;  // < > ^ or 0 for the type's own
  char sign = '-';
  bool zero = false;
  bool alternate = false;
  bool comma = false;
  int width = 0;
  int precision = -1;
  char type = 0;
};

int read_number(std::string_view text, std::size_t& at, Runtime& runtime) {
  int number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number <= kMaxWidth; ++at) number = number * 10 + (text[at] - '0');
  if (number > kMaxWidth) runtime.fail("a format is too wide");
  return std::min(number, kMaxWidth);
}

std::string group_thousands(std::string digits) {
  const auto end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string float_digits(const Style& style, char type, double value) {
  const int precision = style.precision < 0 ? 6 : style.precision;
  const auto digits = [&](char of_type, double number) {
    const std::string spec = fmt::format("{{:{}.{}{}}}", style.alternate ? "#" : "", precision, of_type);
    return fmt::format(fmt::runtime(spec), number);
  };
  if (type == '%') return digits('f', value * 100) + "%";
  return digits(std::string_view("eEgG").find(type) != std::string_view::npos ? type : 'f', value);
}

// A precision is the least number of digits.
std::string integer_digits(const Style& style, std::uint64_t value) {
  const int digits = std::max(1, style.precision);
  switch (style.type) {
    case 'x':
      return (style.alternate ? "0x" : "") + fmt::format("{:0{}x}", value, digits);
    case 'X':
      return (style.alternate ? "0X" : "") + fmt::format("{:0{}X}", value, digits);
    case 'o':
      return (style.alternate ? "0o" : "") + fmt::format("{:0{}o}", value, digits);
    case 'b':
      return (style.alternate ? "0b" : "") + fmt::format("{:0{}b}", value, digits);
    default:
      return fmt::format("{:0{}}", value, digits);
  }
}

std::string pad(const Style& style, std::string sign, std::string body, char default_align) {
  const auto size = count_code_points(sign) + count_code_points(body);
  const auto width = static_cast<std::size_t>(style.width);
  if (size >= width) return sign + body;
  std::string left;
  std::string right;
  const auto room = width - size;
  const char align = style.align != 0 ? style.align : default_align;
  const std::size_t before = align == '<' ? 0 : (align == '^' ? room / 2 : room);
  for (std::size_t i = 0; i < before; ++i) left += style.fill;
  for (std::size_t i = before; i < room; ++i) right += style.fill;
  return align == '=' ? sign + left + body : left + sign + body + right;
}

// A number in a numeric style; anything else fails.
std::string format_number(Runtime& runtime, const Style& style, const Object& value) {
  const bool needs_integer = style.type != 0 && std::string_view("dxXob").find(style.type) != std::string_view::npos;
  if (!value.is_number() || style.type == 's' || (needs_integer && value.is_float())) {
    runtime.fail(fmt::format("the format '{}' does not take a {}", style.type == 0 ? 'd' : style.type, type_name(value)));
    return {};
  }
  const std::string_view integer_types("dixXob", style.type == 0 ? 0 : 6);
  std::int64_t integer = 0;
  const bool is_integer = value.to_integer(integer) && (style.type == 0 || integer_types.find(style.type) != std::string_view::npos);
  std::string digits;
  bool negative = false;
  if (is_integer) {
    negative = integer < 0;
    digits = integer_digits(style, negative ? 0 - static_cast<std::uint64_t>(integer) : static_cast<std::uint64_t>(integer));
  } else {
    const double number = value.to_double();
    negative = std::signbit(number);
    if (style.type == 0 && style.precision < 0) {
      append_float(digits, std::abs(number));
    } else {
      digits = float_digits(style, style.type == 0 ? 'g' : style.type, std::abs(number));
    }
  }
  if (style.comma) digits = group_thousands(std::move(digits));
  const std::string sign = negative ? "-" : (style.sign == '-' ? "" : std::string(1, style.sign));
  Style numeric = style;
  if (style.zero && style.align == 0) numeric.align = '=';
  return pad(numeric, sign, std::move(digits), '>');
}

std::string format_text(Runtime& runtime, const Style& style, std::string text, char default_align) {
  if (style.type != 0 && style.type != 's' && style.type != 'r')
    runtime.fail(fmt::format("the format '{}' does not take a string", style.type));
  if (style.precision >= 0) text.resize(offset_of_code_point(text, static_cast<std::size_t>(style.precision)));
  return pad(style, "", std::move(text), default_align);
}

class PercentFormat {
 public:
  PercentFormat(Runtime& runtime, std::string_view format, const Object& values) : runtime_(runtime), format_(format), values_(values) {}

  Object run() {
    std::string out;
    while (at_ < format_.size() && !runtime_.failed()) {
      const char c = format_[at_++];
      if (c == '%') {
        append_field(out);
      } else {
        out.push_back(c);
      }
    }
    const auto* tuple = as_tuple();
    const auto* list = values_.sequence();
    const bool has_items = values_.dict() != nullptr || (list != nullptr && list->kind <= Sequence::Kind::kRange) || values_.is_undefined();
    const bool unused = tuple != nullptr ? next_ < tuple->items.size() : (next_ == 0 && !has_items);  // Python lets what has items be
    if (unused) runtime_.fail("a '%' format has more values than fields");
    return runtime_.text(std::move(out));
  }

 private:
  const Sequence* as_tuple() const {
    const auto* list = values_.sequence();
    return list != nullptr && list->kind == Sequence::Kind::kTuple ? list : nullptr;
  }

  Object next_value() {
    const auto* tuple = as_tuple();
    if (next_ < (tuple == nullptr ? 1 : tuple->items.size())) return tuple == nullptr ? (++next_, values_) : tuple->items[next_++];
    return runtime_.fail("a '%' format has fewer values than fields");
  }

  Object named_value() {
    const auto close = format_.find(')', at_);
    if (close == std::string_view::npos || values_.dict() == nullptr) return runtime_.fail("a '%(name)' format needs a dict");
    const auto* member = values_.dict()->find(format_.substr(at_ + 1, close - at_ - 1));
    at_ = close + 1;
    return member == nullptr ? runtime_.fail("a '%(name)' format names what the dict lacks") : *member;
  }

  void append_field(std::string& out) {
    Object value;
    if (at_ < format_.size() && format_[at_] == '(') value = named_value();
    Style style;
    for (; at_ < format_.size() && std::string_view("-+ 0#").find(format_[at_]) != std::string_view::npos; ++at_) {
      const char flag = format_[at_];
      if (flag == '-') style.align = '<';
      if (flag == '+' || (flag == ' ' && style.sign != '+')) style.sign = flag;
      style.zero = style.zero || flag == '0';
      style.alternate = style.alternate || flag == '#';
    }
    if (style.zero && style.align == 0) style.fill = "0";
    style.width = read_number(format_, at_, runtime_);
    if (at_ < format_.size() && format_[at_] == '.') style.precision = read_number(format_, ++at_, runtime_);
    style.type = at_ < format_.size() ? format_[at_++] : '\0';
    if (style.type == '%') {
      out.push_back('%');
      return;
    }
    if (value.is_missing()) value = next_value();
    append_value(out, style, value);
  }

  void append_value(std::string& out, Style& style, const Object& value) {
    if (style.type == 's') {
      style.fill = " ";
      out += format_text(runtime_, style, runtime_.to_text(value), '>');
    } else if (style.type == 'r') {
      std::string text;
      if (!append_repr(text, value, runtime_.bytes_left())) runtime_.fail("a value is too large to print");
      style.fill = " ";
      out += format_text(runtime_, style, std::move(text), '>');
    } else if (style.type == 'd' || style.type == 'i' || style.type == 'u') {
      style.type = 'd';
      constexpr double kBound = 9.2233720368547e18;
      const double number = value.to_double();
      if (value.is_float() && !(std::abs(number) < kBound)) runtime_.fail("whole numbers beyond 64 bits are not supported");
      const bool cut = value.is_float() && !runtime_.failed();
      out += format_number(runtime_, style, cut ? Object(static_cast<std::int64_t>(number)) : value);
    } else if (style.type != 0 && std::string_view("feEgGxXo").find(style.type) != std::string_view::npos) {
      out += format_number(runtime_, style, value);
    } else {
      runtime_.fail("a '%' format has an unknown field");
    }
  }

  Runtime& runtime_;
  std::string_view format_;
  const Object& values_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

class BraceFormat {
 public:
  BraceFormat(Runtime& runtime, std::string_view format, const Arguments& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  Object run() {
    std::string out;
    while (at_ < format_.size() && !runtime_.failed()) {
      const char c = format_[at_++];
      const bool doubled = at_ < format_.size() && format_[at_] == c;
      if ((c == '{' || c == '}') && doubled) {
        out.push_back(c);
        ++at_;
      } else if (c == '{') {
        append_field(out);
      } else if (c == '}') {
        runtime_.fail("a format has a single '}'");
      } else {
        out.push_back(c);
      }
    }
    return runtime_.text(std::move(out));
  }

 private:
  Object find_value(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) {
      std::size_t at = 0;
      const auto index = name.empty() ? next_++ : static_cast<std::size_t>(read_number(name, at, runtime_));
      if (at == name.size() && index < arguments_.rest.size()) return arguments_.rest[index];
      return runtime_.fail("a format has fewer values than fields");
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    return runtime_.fail(fmt::format("a format has no value for '{}'", name));
  }

  void append_field(std::string& out) {
    const auto close = format_.find('}', at_);
    if (close == std::string_view::npos) {
      runtime_.fail("a format has a single '{'");
      return;
    }
    std::string_view field = format_.substr(at_, close - at_);
    at_ = close + 1;
    const auto colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    const auto mark = std::min(name.find('!'), name.size());
    const std::string_view conversion = name.substr(mark);
    Object value = find_value(name.substr(0, mark));
    if (conversion == "!r") {
      std::string text;
      if (!append_repr(text, value, runtime_.bytes_left())) runtime_.fail("a value is too large to print");
      value = runtime_.text(std::move(text));
    } else if (conversion == "!s") {
      value = runtime_.text(runtime_.to_text(value));
    } else if (!conversion.empty()) {
      runtime_.fail(fmt::format("the conversion '{}' is not supported", conversion));
    }
    const std::string_view spec = field.substr(std::min(colon + 1, field.size()));
    const Style style = parse_style(spec);
    const bool numeric = value.is_number() && !(value.is_bool() && spec.empty());
    std::int64_t whole = 0;
    if (numeric && value.to_integer(whole) && style.precision >= 0 &&
        (style.type == 0 || std::string_view("dxXob").find(style.type) != std::string_view::npos))
      runtime_.fail("a precision does not go with a whole number");
    out += numeric ? format_number(runtime_, style, value) : format_text(runtime_, style, runtime_.to_text(value), '<');
  }

  Style parse_style(std::string_view spec) {
    Style style;
    std::size_t at = 0;
    const auto is_align = [&](std::size_t where) {
      return where < spec.size() && std::string_view("<>^=").find(spec[where]) != std::string_view::npos;
    };
    std::size_t after_fill = 0;
    if (!spec.empty()) next_code_point(spec, after_fill);
    if (is_align(after_fill)) {
      style.fill = std::string(spec.substr(0, after_fill));
      style.align = spec[after_fill];
      at = after_fill + 1;
    } else if (is_align(0)) {
      style.align = spec[at++];
    }
    const auto skip = [&](char c) { return at < spec.size() && spec[at] == c && ++at > 0; };
    for (const char sign : {'+', ' ', '-'})
      if (skip(sign)) style.sign = sign;
    style.alternate = skip('#');
    style.zero = skip('0');
    if (style.zero && (after_fill == 0 || !is_align(after_fill))) style.fill = "0";
    style.width = read_number(spec, at, runtime_);
    style.comma = skip(',');
    if (skip('.')) style.precision = read_number(spec, at, runtime_);
    if (at < spec.size()) style.type = spec[at++];
    const bool known = style.type == 0 || std::string_view("sdxXobfFeEgG%").find(style.type) != std::string_view::npos;
    if (!known || at < spec.size()) runtime_.fail(fmt::format("the format '{}' is not supported", spec));
    return style;
  }

  Runtime& runtime_;
  std::string_view format_;
  const Arguments& arguments_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

Object percent_format(Runtime& runtime, std::string_view format, const Object& values) {
  return PercentFormat(runtime, format, values).run();
}

Object brace_format(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  return BraceFormat(runtime, format, arguments).run();
}

}  // namespace braid::text::jinja
