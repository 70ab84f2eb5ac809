#include "grammar/json/syntax.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace braid::grammar::json {
namespace {

constexpr std::uint32_t kMaxIntegerDigits = 17;  // after the first
constexpr std::uint32_t kMaxFractionDigits = 17;
constexpr std::uint32_t kFirstPrintable = 0x20;

CodePointSet digits() { return CodePointSet({{'0', '9'}}); }
CodePointSet hex_digits() { return CodePointSet({{'0', '9'}, {'a', 'f'}, {'A', 'F'}}); }
CodePointSet needs_escape() { return CodePointSet({{0, kFirstPrintable - 1}, {'"', '"'}, {'\\', '\\'}}); }

std::string escape(std::uint32_t point) {
  switch (point) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\u{:04x}", point);
  }
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  std::uint32_t point = 0;
  for (std::size_t at = 0; at < text.size() && next_code_point(text, at, point);) out += static_cast<char32_t>(point);
  return out;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < kFirstPrintable || c == '"' || c == '\\') {
      out += escape(byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

ExprId Syntax::once(std::optional<ExprId>& kept, const char* name, const std::function<ExprId()>& make) {
  if (kept) return *kept;
  const RuleId rule = grammar_.declare(name);
  kept = grammar_.call(rule);  // before the body is made, which may refer to the rule
  grammar_.define(rule, make());
  return *kept;
}

ExprId Syntax::value() {
  return once(value_, "JSON value", [&] { return grammar_.choice({object(), array(), string(), number(), boolean(), null()}); });
}

ExprId Syntax::object() {
  return once(object_, "JSON object", [&] { return grammar_.choice({empty_braces(), braces(list(member(string(), value())))}); });
}

ExprId Syntax::array() {
  return once(array_, "JSON array", [&] { return grammar_.choice({empty_brackets(), brackets(list(value()))}); });
}

ExprId Syntax::list(ExprId item) { return grammar_.sequence({item, grammar_.repeat(grammar_.sequence({comma(), item}), 0, kUnbounded)}); }

ExprId Syntax::boolean() { return grammar_.choice({grammar_.bytes("true"), grammar_.bytes("false")}); }

ExprId Syntax::null() { return grammar_.bytes("null"); }

ExprId Syntax::integer() {
  return once(integer_, "JSON integer", [&] {
    const ExprId digit = grammar_.chars(digits());
    const ExprId many = grammar_.sequence({grammar_.chars(CodePointSet({{'1', '9'}})), grammar_.repeat(digit, 0, kMaxIntegerDigits)});
    return grammar_.sequence({grammar_.optional(grammar_.bytes("-")), grammar_.choice({grammar_.bytes("0"), many})});
  });
}

ExprId Syntax::number() {
  return once(number_, "JSON number", [&] {
    const ExprId digit = grammar_.chars(digits());
    const ExprId fraction = grammar_.sequence({grammar_.bytes("."), grammar_.repeat(digit, 1, kMaxFractionDigits)});
    const ExprId exponent = grammar_.sequence(
        {grammar_.chars(CodePointSet::of("eE")), grammar_.optional(grammar_.chars(CodePointSet::of("+-"))), grammar_.repeat(digit, 1, 2)});
    return grammar_.sequence({integer(), grammar_.optional(fraction), grammar_.optional(exponent)});
  });
}

// \uXXXX for a character of the first plane, or the two surrogates of another.
ExprId Syntax::escaped_unit() {
  const ExprId hex = grammar_.chars(hex_digits());
  const ExprId two = grammar_.repeat(hex, 2, 2);
  const ExprId d = grammar_.chars(CodePointSet::of("dD"));
  const ExprId no_d = grammar_.chars(hex_digits().without(CodePointSet::of("dD")));
  const ExprId first_plane =
      grammar_.choice({grammar_.sequence({no_d, hex, two}), grammar_.sequence({d, grammar_.chars(CodePointSet({{'0', '7'}})), two})});
  const ExprId high = grammar_.sequence({d, grammar_.chars(CodePointSet::of("89abAB")), two});
  const ExprId low = grammar_.sequence({d, grammar_.chars(CodePointSet::of("cdefCDEF")), two});
  return grammar_.sequence({grammar_.bytes("u"), grammar_.choice({first_plane, grammar_.sequence({high, grammar_.bytes("\\u"), low})})});
}

ExprId Syntax::any_character() {
  return once(character_, "JSON character", [&] {
    const ExprId escape = grammar_.choice({grammar_.chars(CodePointSet::of("\"\\/bfnrt")), escaped_unit()});
    return grammar_.choice({grammar_.chars(needs_escape().complement()), grammar_.sequence({grammar_.bytes("\\"), escape})});
  });
}

ExprId Syntax::string() {
  return once(string_, "JSON string", [&] {
    const RuleId character = grammar_.expr(any_character()).rule;
    return quoted(grammar_.repeat(grammar_.rule(character).body, 0, kUnbounded));  // its body: without a call for each character
  });
}

ExprId Syntax::string_of_length(std::uint32_t min, std::uint32_t max) {
  if (min == 0 && max == kUnbounded) return string();
  const auto [known, fresh] = strings_.try_emplace({min, max}, 0);
  if (fresh) {
    const RuleId rule = grammar_.declare("JSON string of a bounded length");
    grammar_.define(rule, quoted(grammar_.repeat(any_character(), min, max)));
    known->second = grammar_.call(rule);
  }
  return known->second;
}

ExprId Syntax::quoted(ExprId content) { return grammar_.sequence({grammar_.bytes("\""), content, grammar_.bytes("\"")}); }

ExprId Syntax::string_character(const CodePointSet& set) {
  std::vector<ExprId> options;
  if (CodePointSet plain = set.without(needs_escape()); !plain.empty()) options.push_back(grammar_.chars(std::move(plain)));
  const CodePointSet escaped = needs_escape();
  for (const CodePointRange& range : escaped.ranges())
    for (std::uint32_t point = range.first; point <= range.last; ++point)
      if (set.contains(point)) options.push_back(grammar_.bytes(escape(point)));
  return grammar_.choice(std::move(options));
}

ExprId Syntax::string_except(const std::vector<std::string>& names) {
  std::vector<std::u32string> sorted;
  for (const std::string& name : names) sorted.push_back(code_points(name));
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  if (!plain_tail_) plain_tail_ = grammar_.repeat(string_character(CodePointSet::all()), 0, kUnbounded);
  return grammar_.sequence({grammar_.bytes("\""), except(sorted, 0), grammar_.bytes("\"")});
}

// What may follow a common prefix of `names` of `depth` characters: the end, unless that is a name; a character that leads away
// from all of them and then anything; or one of theirs.
ExprId Syntax::except(const std::vector<std::u32string>& names, std::size_t depth) {
  std::map<char32_t, std::vector<std::u32string>> branches;
  bool is_name = false;
  for (const std::u32string& name : names) {
    if (name.size() == depth) {
      is_name = true;
    } else {
      branches[name[depth]].push_back(name);
    }
  }
  std::vector<CodePointRange> taken;
  for (const auto& [point, rest] : branches) taken.push_back({point, point});
  std::vector<ExprId> options;
  options.push_back(grammar_.sequence({string_character(CodePointSet(taken).complement()), *plain_tail_}));
  if (!is_name) options.push_back(grammar_.empty());
  for (const auto& [point, rest] : branches)
    options.push_back(grammar_.sequence({string_character(CodePointSet({{point, point}})), except(rest, depth + 1)}));
  return grammar_.choice(std::move(options));
}

ExprId Syntax::constant(const Value& value) {
  if (const auto* text = value.get_if<std::string>()) return grammar_.bytes(quote(*text));
  if (const auto* flag = value.get_if<bool>()) return grammar_.bytes(*flag ? "true" : "false");
  if (const auto* whole = value.get_if<std::int64_t>()) return grammar_.bytes(fmt::format("{}", *whole));
  if (const auto* digits = value.get_if<LongInteger>()) return grammar_.bytes(digits->text);
  if (const auto* real = value.get_if<double>()) return grammar_.bytes(fmt::format("{}", *real));
  std::vector<ExprId> parts;
  if (const auto* items = value.get_if<ValueList>()) {
    for (const Value& item : *items) {
      if (!parts.empty()) parts.push_back(comma());
      parts.push_back(constant(item));
    }
    return parts.empty() ? empty_brackets() : brackets(grammar_.sequence(std::move(parts)));
  }
  if (const auto* members = value.get_if<ValueDict>()) {
    for (const auto& [name, item] : *members) {
      if (!parts.empty()) parts.push_back(comma());
      parts.push_back(member(grammar_.bytes(quote(name)), constant(item)));
    }
    return parts.empty() ? empty_braces() : braces(grammar_.sequence(std::move(parts)));
  }
  return null();
}

ExprId Syntax::space() {
  return once(space_, "white space", [&] {
    const ExprId indent = grammar_.repeat(grammar_.chars(CodePointSet::of(" \t")), 0, kMaxIndent);
    return grammar_.optional(grammar_.choice({grammar_.bytes(" "), grammar_.sequence({grammar_.bytes("\n"), indent})}));
  });
}

ExprId Syntax::comma() { return grammar_.sequence({grammar_.bytes(","), space()}); }

ExprId Syntax::member(ExprId key, ExprId value) {
  return grammar_.sequence({key, grammar_.bytes(":"), grammar_.optional(grammar_.bytes(" ")), value});
}

ExprId Syntax::braces(ExprId members) { return grammar_.sequence({grammar_.bytes("{"), space(), members, space(), grammar_.bytes("}")}); }

ExprId Syntax::empty_braces() { return grammar_.sequence({grammar_.bytes("{"), space(), grammar_.bytes("}")}); }

ExprId Syntax::brackets(ExprId elements) {
  return grammar_.sequence({grammar_.bytes("["), space(), elements, space(), grammar_.bytes("]")});
}

ExprId Syntax::empty_brackets() { return grammar_.sequence({grammar_.bytes("["), space(), grammar_.bytes("]")}); }

}  // namespace braid::grammar::json
