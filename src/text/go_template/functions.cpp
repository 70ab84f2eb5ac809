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

using Arguments = std::span<const Term>;

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

void append_json(const Value& value, std::string& out);

void append_json(std::span<const Value> list, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    append_json(list[i], out);
  }
  out += ']';
}

void append_json(const Value& value, std::string& out) {
  if (const auto* text = value.get_if<std::string>()) return append_quoted(*text, out);
  if (const auto* list = value.get_if<ValueList>()) return append_json(std::span<const Value>(*list), out);
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

// As Go's encoding/json does.
std::string json_of(const Term& term) {
  std::string out;
  if (term.is_list()) {
    append_json(term.items(), out);
  } else {
    append_json(term.value(), out);
  }
  return out;
}

// Negative: the first is less. None: they are of different kinds.
std::optional<int> compared(const Term& one, const Term& other) {
  if (one.is_list() || other.is_list()) return std::nullopt;
  if (one.text() != nullptr && other.text() != nullptr) return one.text()->compare(*other.text());
  const auto number = one.value().number();
  const auto other_number = other.value().number();
  if (number && other_number) return *number < *other_number ? -1 : *number > *other_number ? 1 : 0;
  return std::nullopt;
}

// Two lists or two objects are not compared, as in Go: who sends them and the template would choose how long that takes.
Result<bool> equal(std::string_view name, const Term& one, const Term& other) {
  const std::optional<int> order = compared(one, other);
  if (order) return *order == 0;
  const auto is_object = [](const Term& term) { return term.value().get_if<ValueDict>() != nullptr; };
  if ((one.is_list() && other.is_list()) || (is_object(one) && is_object(other))) return wrong(name, "compares no lists and no objects");
  return !one.is_list() && !other.is_list() && one.value() == other.value();
}

Result<Term> len(Arguments arguments) {
  const std::optional<std::size_t> size = arguments[0].size();
  if (!size) return wrong("len", "wants a text, a list or an object");
  return Term(Value(static_cast<std::int64_t>(*size)));
}

Result<Term> negation(Arguments arguments) { return Term(Value(!is_true(arguments[0]))); }

// The first one and any of the others.
Result<Term> eq(Arguments arguments) {
  for (const Term& other : arguments.subspan(1)) {
    const Result<bool> same = equal("eq", arguments[0], other);
    if (!same) return same.error();
    if (*same) return Term(Value(true));
  }
  return Term(Value(false));
}

Result<Term> ne(Arguments arguments) {
  const Result<bool> same = equal("ne", arguments[0], arguments[1]);
  if (!same) return same.error();
  return Term(Value(!*same));
}

template <class Holds>
Result<Term> ordered(std::string_view name, Arguments arguments, Holds holds) {
  const std::optional<int> order = compared(arguments[0], arguments[1]);
  if (!order) return wrong(name, "compares two numbers or two texts");
  return Term(Value(holds(*order)));
}
Result<Term> lt(Arguments arguments) {
  return ordered("lt", arguments, [](int order) { return order < 0; });
}
Result<Term> le(Arguments arguments) {
  return ordered("le", arguments, [](int order) { return order <= 0; });
}
Result<Term> gt(Arguments arguments) {
  return ordered("gt", arguments, [](int order) { return order > 0; });
}
Result<Term> ge(Arguments arguments) {
  return ordered("ge", arguments, [](int order) { return order >= 0; });
}

std::optional<std::size_t> place_in(const Term& place, std::size_t size) {
  const auto* whole = place.value().get_if<std::int64_t>();
  return whole != nullptr && *whole >= 0 && std::cmp_less_equal(*whole, size) ? std::optional(static_cast<std::size_t>(*whole))
                                                                              : std::nullopt;
}

// An element of a list, or a member of an object, once for each further argument. What an object has not is nil.
Result<Term> index(Arguments arguments) {
  Term term = arguments[0];
  for (const Term& key : arguments.subspan(1)) {
    if (term.is_list()) {
      const std::span<const Value> items = term.items();
      const std::optional<std::size_t> place = place_in(key, items.size());
      if (!place || *place == items.size()) return wrong("index", "is out of range");
      term = Term::part(term, items[*place]);
    } else if (key.text() != nullptr && (term.value().get_if<ValueDict>() != nullptr || term.value().is_null())) {
      const Value* found = term.value().find(*key.text());
      term = found != nullptr ? Term::part(term, *found) : Term();
    } else {
      return wrong("index", "wants a list and a number, or an object and a name");
    }
  }
  return term;
}

// From the first number on, up to the second one.
Result<Term> slice(Arguments arguments) {
  const Term& term = arguments[0];
  if (!term.is_list() && term.text() == nullptr) return wrong("slice", "wants a list or a text");
  const std::size_t size = *term.size();
  const std::optional<std::size_t> begin = arguments.size() > 1 ? place_in(arguments[1], size) : 0;
  const std::optional<std::size_t> end = arguments.size() > 2 ? place_in(arguments[2], size) : size;
  if (!begin || !end || *begin > *end) return wrong("slice", "is out of range");
  return term.is_list() ? term.slice(*begin, *end) : Term(Value(term.text()->substr(*begin, *end - *begin)));
}

// Go puts a space between two neighbours that are no texts.
Result<Term> print(Arguments arguments) {
  std::string out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto is_text = [&](std::size_t place) { return arguments[place].text() != nullptr; };
    if (i > 0 && !is_text(i) && !is_text(i - 1)) out += ' ';
    out += text_of(arguments[i]);
  }
  return Term(Value(std::move(out)));
}

Result<Term> println(Arguments arguments) {
  std::string out;
  for (std::size_t i = 0; i < arguments.size(); ++i) out += (i > 0 ? " " : "") + text_of(arguments[i]);
  return Term(Value(out + "\n"));
}

// %s, %v, %d, %q and %%, without widths.
Result<Term> printf(Arguments arguments) {
  const std::string* form = arguments[0].text();
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
  return Term(Value(std::move(out)));
}

Result<Term> json(Arguments arguments) { return Term(Value(json_of(arguments[0]))); }

std::string day(std::time_t time) {
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Result<Term> current_date(Arguments) { return Term(Value(day(std::time(nullptr)))); }
Result<Term> yesterday_date(Arguments) {
  constexpr std::time_t kDay = 24 * 3600;
  return Term(Value(day(std::time(nullptr) - kDay)));
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

Result<Term> to_typescript(Arguments arguments) {
  return Term(Value(arguments[0].is_list() ? "any" : typescript_of(arguments[0].value())));
}

struct Function {
  std::string_view name;
  std::size_t least;
  std::size_t most;
  Result<Term> (*run)(Arguments) = nullptr;
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

Result<Term> call(std::string_view name, Arguments arguments) {
  const Function* function = find(name);
  if (function == nullptr || function->run == nullptr) return wrong(name, "is no function");
  if (arguments.size() < function->least || arguments.size() > function->most)
    return wrong(name, fmt::format("takes {} arguments, not {}", function->least, arguments.size()));
  return function->run(arguments);
}

bool is_true(const Term& term) {
  if (const std::optional<std::size_t> size = term.size()) return *size > 0;
  if (const auto* flag = term.value().get_if<bool>()) return *flag;
  const auto number = term.value().number();
  return number && *number != 0.0;
}

std::string text_of(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return *text;
  if (value.is_null()) return "";
  if (const auto* flag = value.get_if<bool>()) return *flag ? "true" : "false";
  if (const auto* whole = value.get_if<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto* number = value.get_if<double>()) return number_text(*number);
  if (const auto* digits = value.get_if<LongInteger>()) return digits->text;
  std::string out;
  append_json(value, out);
  return out;
}

std::string text_of(const Term& term) { return term.is_list() ? json_of(term) : text_of(term.value()); }

}  // namespace braid::text::go
