#include "text/go_template/functions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <utility>

namespace braid::text::go {
namespace {

using Arguments = std::span<const Value>;

Error wrong(std::string_view name, std::string_view what) {
  return invalid_argument(fmt::format("the template: '{}' {}", name, what), "template");
}

// Within JSON's double quotes, with what is special to HTML escaped, as Go does it.
void append_quoted(const std::string& text, std::string& out) {
  out += '"';
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '<' || c == '>' || c == '&') {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else if (text.compare(at, 3, "\xE2\x80\xA8") == 0 || text.compare(at, 3, "\xE2\x80\xA9") == 0) {
      out += text[at + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string number_text(double number) {
  if (std::floor(number) == number && std::abs(number) < 1e21) return fmt::format("{:.0f}", number);
  return fmt::format("{}", number);
}

void append_json(const Value& value, std::string& out) {
  if (const auto* text = value.get_if<std::string>()) return append_quoted(*text, out);
  if (const auto* list = value.get_if<ValueList>()) {
    out += '[';
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i > 0) out += ',';
      append_json((*list)[i], out);
    }
    out += ']';
    return;
  }
  if (const auto* dict = value.get_if<ValueDict>()) {
    out += '{';
    for (std::size_t i = 0; i < dict->size(); ++i) {
      if (i > 0) out += ',';
      append_quoted((*dict)[i].first, out);
      out += ':';
      append_json((*dict)[i].second, out);
    }
    out += '}';
    return;
  }
  out += value.is_null() ? "null" : text_of(value);
}

std::optional<std::size_t> size_of(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return text->size();
  if (const auto* list = value.get_if<ValueList>()) return list->size();
  if (const auto* dict = value.get_if<ValueDict>()) return dict->size();
  return value.is_null() ? std::optional<std::size_t>(0) : std::nullopt;
}

// Negative: the first is less. None: they are of different kinds.
std::optional<int> compared(const Value& one, const Value& other) {
  const auto* text = one.get_if<std::string>();
  const auto* other_text = other.get_if<std::string>();
  if (text != nullptr && other_text != nullptr) return text->compare(*other_text);
  const auto number = one.number();
  const auto other_number = other.number();
  if (number && other_number) return *number < *other_number ? -1 : *number > *other_number ? 1 : 0;
  return std::nullopt;
}

bool equal(const Value& one, const Value& other) {
  const std::optional<int> order = compared(one, other);
  return order ? *order == 0 : one == other;
}

Result<Value> len(Arguments arguments) {
  const std::optional<std::size_t> size = size_of(arguments[0]);
  if (!size) return wrong("len", "wants a text, a list or an object");
  return Value(static_cast<std::int64_t>(*size));
}

Result<Value> negation(Arguments arguments) { return Value(!is_true(arguments[0])); }

// The first one and any of the others.
Result<Value> eq(Arguments arguments) {
  const auto is_same = [&](const Value& other) { return equal(arguments[0], other); };
  return Value(std::ranges::any_of(arguments.subspan(1), is_same));
}

Result<Value> ne(Arguments arguments) { return Value(!equal(arguments[0], arguments[1])); }

template <class Holds>
Result<Value> ordered(std::string_view name, Arguments arguments, Holds holds) {
  const std::optional<int> order = compared(arguments[0], arguments[1]);
  if (!order) return wrong(name, "compares two numbers or two texts");
  return Value(holds(*order));
}
Result<Value> lt(Arguments arguments) {
  return ordered("lt", arguments, [](int order) { return order < 0; });
}
Result<Value> le(Arguments arguments) {
  return ordered("le", arguments, [](int order) { return order <= 0; });
}
Result<Value> gt(Arguments arguments) {
  return ordered("gt", arguments, [](int order) { return order > 0; });
}
Result<Value> ge(Arguments arguments) {
  return ordered("ge", arguments, [](int order) { return order >= 0; });
}

std::optional<std::size_t> place_in(const Value& place, std::size_t size) {
  const auto* whole = place.get_if<std::int64_t>();
  return whole != nullptr && *whole >= 0 && std::cmp_less_equal(*whole, size) ? std::optional(static_cast<std::size_t>(*whole))
                                                                              : std::nullopt;
}

// An element of a list, or a member of an object, once for each further argument. What an object has not is nil.
Result<Value> index(Arguments arguments) {
  Value value = arguments[0];
  for (const Value& key : arguments.subspan(1)) {
    if (const auto* list = value.get_if<ValueList>()) {
      const std::optional<std::size_t> place = place_in(key, list->size());
      if (!place || *place == list->size()) return wrong("index", "is out of range");
      value = Value(Value((*list)[*place]));
    } else if (const auto* name = key.get_if<std::string>(); name != nullptr && (value.get_if<ValueDict>() != nullptr || value.is_null())) {
      const Value* found = value.find(*name);
      value = found != nullptr ? Value(*found) : Value();
    } else {
      return wrong("index", "wants a list and a number, or an object and a name");
    }
  }
  return value;
}

// From the first number on, up to the second one.
Result<Value> slice(Arguments arguments) {
  const auto* list = arguments[0].get_if<ValueList>();
  const auto* text = arguments[0].get_if<std::string>();
  if (list == nullptr && text == nullptr) return wrong("slice", "wants a list or a text");
  const std::size_t size = list != nullptr ? list->size() : text->size();
  const std::optional<std::size_t> begin = arguments.size() > 1 ? place_in(arguments[1], size) : 0;
  const std::optional<std::size_t> end = arguments.size() > 2 ? place_in(arguments[2], size) : size;
  if (!begin || !end || *begin > *end) return wrong("slice", "is out of range");
  if (text != nullptr) return Value(text->substr(*begin, *end - *begin));
  const auto at = [list](std::size_t place) { return list->begin() + static_cast<std::ptrdiff_t>(place); };
  return Value(ValueList(at(*begin), at(*end)));
}

// Go puts a space between two neighbours that are no texts.
Result<Value> print(Arguments arguments) {
  std::string out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto is_text = [&](std::size_t place) { return arguments[place].get_if<std::string>() != nullptr; };
    if (i > 0 && !is_text(i) && !is_text(i - 1)) out += ' ';
    out += text_of(arguments[i]);
  }
  return Value(std::move(out));
}

Result<Value> println(Arguments arguments) {
  std::string out;
  for (std::size_t i = 0; i < arguments.size(); ++i) out += (i > 0 ? " " : "") + text_of(arguments[i]);
  return Value(out + "\n");
}

// %s, %v, %d, %q and %%, without widths.
Result<Value> printf(Arguments arguments) {
  const auto* form = arguments[0].get_if<std::string>();
  if (form == nullptr) return wrong("printf", "wants a text first");
  std::string out;
  std::size_t next = 1;
  for (std::size_t at = 0; at < form->size(); ++at) {
    if ((*form)[at] != '%') {
      out += (*form)[at];
      continue;
    }
    const char verb = ++at < form->size() ? (*form)[at] : '\0';
    if (verb == '%') {
      out += '%';
      continue;
    }
    if (std::string_view("svdq").find(verb) == std::string_view::npos || verb == '\0')
      return wrong("printf", "knows %s, %v, %d, %q and %%");
    if (next == arguments.size()) return wrong("printf", "has too few arguments");
    const std::string text = text_of(arguments[next++]);
    if (verb == 'q') {
      append_quoted(text, out);
    } else {
      out += text;
    }
  }
  return Value(std::move(out));
}

Result<Value> json(Arguments arguments) { return Value(json_of(arguments[0])); }

std::string day(std::time_t time) {
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Result<Value> current_date(Arguments) { return Value(day(std::time(nullptr))); }
Result<Value> yesterday_date(Arguments) {
  constexpr std::time_t kDay = 24 * 3600;
  return Value(day(std::time(nullptr) - kDay));
}

std::string type_name(const std::string& type) {
  if (type == "integer") return "number";
  if (type == "array") return "any[]";
  if (type == "object") return "Record<string, any>";
  return type;
}

// Of a property of a tool's parameters, as TypeScript would write it.
std::string typescript_of(const Value& property) {
  std::string out;
  const auto add = [&out](const std::string& one) {
    if (!one.empty()) out += (out.empty() ? "" : " | ") + one;
  };
  if (const Value* any = property.find("anyOf"); any != nullptr && any->get_if<ValueList>() != nullptr)
    for (const Value& one : *any->get_if<ValueList>()) add(typescript_of(one));
  if (!out.empty()) return out;
  const Value* type = property.find("type");
  const auto* types = type != nullptr ? type->get_if<ValueList>() : nullptr;
  if (types != nullptr) {
    for (const Value& one : *types) add(type_name(text_of(one)));
  } else if (type != nullptr) {
    add(type_name(text_of(*type)));
  }
  return out.empty() ? "any" : out;
}

Result<Value> to_typescript(Arguments arguments) { return Value(typescript_of(arguments[0])); }

struct Function {
  std::string_view name;
  std::size_t least;
  std::size_t most;
  Result<Value> (*run)(Arguments) = nullptr;
};

constexpr std::size_t kAnyNumber = 1000;
constexpr std::array kFunctions = {
    Function{"and", 1, kAnyNumber, nullptr},
    Function{"or", 1, kAnyNumber, nullptr},
    Function{"not", 1, 1, negation},
    Function{"len", 1, 1, len},
    Function{"index", 1, kAnyNumber, index},
    Function{"slice", 1, 3, slice},
    Function{"eq", 2, kAnyNumber, eq},
    Function{"ne", 2, 2, ne},
    Function{"lt", 2, 2, lt},
    Function{"le", 2, 2, le},
    Function{"gt", 2, 2, gt},
    Function{"ge", 2, 2, ge},
    Function{"print", 0, kAnyNumber, print},
    Function{"println", 0, kAnyNumber, println},
    Function{"printf", 1, kAnyNumber, printf},
    Function{"json", 1, 1, json},
    Function{"toJson", 1, 1, json},
    Function{"currentDate", 0, kAnyNumber, current_date},
    Function{"yesterdayDate", 0, kAnyNumber, yesterday_date},
    Function{"toTypeScriptType", 1, 1, to_typescript},
};

const Function* find(std::string_view name) {
  const auto found = std::ranges::find(kFunctions, name, &Function::name);
  return found != kFunctions.end() ? &*found : nullptr;
}

}  // namespace

bool is_function(std::string_view name) { return find(name) != nullptr; }

Result<Value> call(std::string_view name, Arguments arguments) {
  const Function* function = find(name);
  if (function == nullptr || function->run == nullptr) return wrong(name, "is no function");
  if (arguments.size() < function->least || arguments.size() > function->most)
    return wrong(name, fmt::format("takes {} arguments, not {}", function->least, arguments.size()));
  return function->run(arguments);
}

bool is_true(const Value& value) {
  if (const auto* flag = value.get_if<bool>()) return *flag;
  if (const auto number = value.number()) return *number != 0.0;
  const std::optional<std::size_t> size = size_of(value);
  return size && *size > 0;
}

std::string text_of(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (value.is_null()) return "";
  if (const auto* flag = value.get_if<bool>()) return *flag ? "true" : "false";
  if (const auto* whole = value.get_if<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto* number = value.get_if<double>()) return number_text(*number);
  if (const auto* digits = value.get_if<LongInteger>()) return digits->text;
  return json_of(value);
}

std::string json_of(const Value& value) {
  std::string out;
  append_json(value, out);
  return out;
}

}  // namespace braid::text::go
