#include "grammar/ebnf/cursor.h"
#include "grammar/ebnf/grammar_text.h"
#include "grammar/ebnf/rules.h"
#include "grammar/regex.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace braid::grammar {
namespace {

// The terminals of Lark's common library, as its documentation describes them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kCommon = {{
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9a-fA-F]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"},
    {"NUMBER", "([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?([0-9]+|[0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"},
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Za-z_][A-Za-z_0-9]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
    {"SQL_COMMENT", "--[^\\n]*"},
}};

bool is_terminal(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

class LarkParser {
 public:
  LarkParser(std::string_view text, Grammar& grammar, CharacterOf character)
      : cursor_(text, "//", "#"), text_(text), grammar_(grammar), character_(std::move(character)), rules_(grammar),
        ignored_(grammar.declare("%ignore")), ignores_(text.find("%ignore") != std::string_view::npos) {}

  Result<ExprId> run() {
    for (cursor_.skip_space(); !cursor_.at_end() && !cursor_.failed(); cursor_.skip_space()) {
      if (cursor_.take("%")) {
        directive();
      } else {
        definition();
      }
    }
    if (cursor_.failed()) return cursor_.error();
    if (!rules_.is_defined("start")) return invalid_argument("the grammar has no rule named start");
    if (const auto name = rules_.missing()) return invalid_argument(fmt::format("the grammar has no rule named {}", *name));
    grammar_.define(ignored_, grammar_.choice(ignore_options_));
    const ExprId start = rules_.call("start");
    return ignores_ ? grammar_.sequence({start, grammar_.optional(grammar_.call(ignored_))}) : start;
  }

 private:
  // ? and ! before a rule's name, in either order: they shape the tree.
  void modifiers() {
    while (cursor_.take("?") || cursor_.take("!")) continue;
  }

  // Says which match of several counts: here all do.
  void priority() {
    if (!cursor_.take(".")) return;
    cursor_.take("-");
    cursor_.number();
  }

  void definition() {
    modifiers();
    const std::string_view name = cursor_.name();
    if (name.empty()) return cursor_.fail("a rule's name is expected");
    if (cursor_.peek() == '{') return cursor_.fail("templates are not supported");
    priority();
    cursor_.skip_space();
    if (!cursor_.take(":")) return cursor_.fail("a colon is expected");
    in_terminal_ = is_terminal(name);
    const ExprId body = alternatives(0);
    in_terminal_ = false;
    if (!cursor_.failed() && !rules_.define(name, body)) cursor_.fail(fmt::format("{} is defined twice", name));
  }

  void directive() {
    const std::string_view name = cursor_.name();
    cursor_.skip_space();
    if (name == "ignore") {
      in_terminal_ = true;
      ignore_options_.push_back(alternatives(0));
      in_terminal_ = false;
    } else if (name == "import") {
      import();
    } else {
      cursor_.fail(fmt::format("%{} is not supported", name));
    }
  }

  void import() {
    if (!cursor_.take("common")) return cursor_.fail("only the library common can be imported");
    if (cursor_.take(".")) {
      const std::string_view name = cursor_.name();
      const std::size_t after = cursor_.position();
      cursor_.skip_space();
      std::string_view alias = name;
      if (cursor_.take("->")) {
        cursor_.skip_space();
        alias = cursor_.name();
      } else {
        cursor_.go_to(after);
      }
      return import_as(name, alias);
    }
    cursor_.skip_space();
    if (!cursor_.take("(")) return cursor_.fail("a name of the library common is expected");
    do {
      cursor_.skip_space();
      const std::string_view name = cursor_.name();
      import_as(name, name);
      cursor_.skip_space();
    } while (cursor_.take(",") && !cursor_.failed());
    if (!cursor_.take(")")) cursor_.fail("a list of names has no end");
  }

  void import_as(std::string_view name, std::string_view alias) {
    const auto* known = std::find_if(kCommon.begin(), kCommon.end(), [&](const auto& entry) { return entry.first == name; });
    if (known == kCommon.end()) return cursor_.fail(fmt::format("common.{} is not known", name));
    if (!rules_.define(alias, regex(known->second, {}))) cursor_.fail(fmt::format("{} is defined twice", alias));
  }

  ExprId alternatives(std::size_t nesting) {
    std::vector<ExprId> options;
    do {
      options.push_back(sequence(nesting));
      if (cursor_.take("->")) {  // names a branch of the tree
        cursor_.skip_space();
        cursor_.name();
      }
      cursor_.skip_space();
    } while (!cursor_.failed() && cursor_.take("|"));
    return grammar_.choice(std::move(options));
  }

  ExprId sequence(std::size_t nesting) {
    std::vector<ExprId> parts;
    for (;;) {
      cursor_.skip_space();
      const char c = cursor_.peek();
      if (cursor_.failed() || cursor_.at_end() || c == '|' || c == ')' || c == ']' || c == '%' || (c == '-' && cursor_.peek(1) == '>') ||
          (nesting == 0 && next_definition_begins()))
        break;
      parts.push_back(quantified(atom(nesting)));
    }
    return grammar_.sequence(std::move(parts));
  }

  bool next_definition_begins() {
    const std::size_t begin = cursor_.position();
    modifiers();
    const bool named = !cursor_.name().empty();
    priority();
    cursor_.skip_space();
    const bool begins = named && cursor_.peek() == ':';
    cursor_.go_to(begin);
    return begins;
  }

  // In a rule, what is ignored may stand before a terminal; within a terminal nothing is ignored.
  ExprId terminal(ExprId expr) {
    return in_terminal_ || !ignores_ ? expr : grammar_.sequence({grammar_.optional(grammar_.call(ignored_)), expr});
  }

  ExprId atom(std::size_t nesting) {
    if (cursor_.take("\"")) return terminal(literal());
    if (cursor_.take("/")) return terminal(regex_literal());
    const bool optional = cursor_.peek() == '[';
    if (cursor_.take("(") || cursor_.take("[")) {
      if (nesting >= kMaxGroupNesting) cursor_.fail("groups nest too deep");
      const ExprId inner = cursor_.failed() ? grammar_.nothing() : alternatives(nesting + 1);
      if (!cursor_.take(optional ? "]" : ")")) cursor_.fail("a group has no end");
      return optional ? grammar_.optional(inner) : inner;
    }
    const std::string_view name = cursor_.name();
    if (name.empty()) cursor_.fail(fmt::format("'{}' is not expected", cursor_.peek()));
    if (cursor_.peek() == '{') cursor_.fail("templates are not supported");
    if (cursor_.failed()) return grammar_.nothing();
    return is_terminal(name) ? terminal(rules_.call(name)) : rules_.call(name);
  }

  // A backslash before anything that it does not escape is itself a part of the text: "\." is two characters.
  std::vector<std::uint32_t> quoted() {
    constexpr std::string_view kEscapes = "\\\"nrtfxuU";
    std::vector<std::uint32_t> points;
    while (!cursor_.failed() && !cursor_.take("\"")) {
      if (cursor_.peek() == '\n') cursor_.fail("a text has no end");
      if (cursor_.peek() == '\\' && kEscapes.find(cursor_.peek(1)) == std::string_view::npos) {
        cursor_.advance();
        points.push_back('\\');
      }
      points.push_back(cursor_.character());
    }
    return points;
  }

  // Skips the two dots of a range, which blanks may surround.
  bool takes_range() {
    const std::size_t begin = cursor_.position();
    cursor_.skip_blanks();
    if (cursor_.take("..")) {
      cursor_.skip_blanks();
      if (cursor_.take("\"")) return true;
    }
    cursor_.go_to(begin);
    return false;
  }

  ExprId literal() {
    const std::vector<std::uint32_t> points = quoted();
    if (takes_range()) {
      const std::vector<std::uint32_t> last = quoted();
      if (points.size() != 1 || last.size() != 1 || points.front() > last.front()) cursor_.fail("a range lies between two characters");
      return cursor_.failed() ? grammar_.nothing() : character_(CodePointSet({{points.front(), last.front()}}));
    }
    const bool any_case = cursor_.take("i");
    std::vector<ExprId> parts;
    for (const std::uint32_t point : points) {
      const bool letter = (point | 0x20U) >= 'a' && (point | 0x20U) <= 'z';
      const std::uint32_t other = any_case && letter ? point ^ 0x20U : point;
      parts.push_back(character_(CodePointSet({{point, point}, {other, other}})));
    }
    return grammar_.sequence(std::move(parts));
  }

  ExprId regex_literal() {
    const std::size_t begin = cursor_.position();
    while (!cursor_.at_end() && cursor_.peek() != '/' && cursor_.peek() != '\n') {
      if (cursor_.peek() == '\\') cursor_.advance();
      cursor_.advance();
    }
    const std::size_t end = std::min(cursor_.position(), text_.size());
    if (!cursor_.take("/")) {
      cursor_.fail("a regular expression has no end");
      return grammar_.nothing();
    }
    RegexOptions options;
    for (;; cursor_.advance()) {
      if (cursor_.peek() == 'i') {
        options.ignore_case = true;
      } else if (cursor_.peek() == 's') {
        options.dot_all = true;
      } else if (std::string_view("lmx").find(cursor_.peek()) != std::string_view::npos) {
        cursor_.fail(fmt::format("the flag {} of a regular expression is not supported", cursor_.peek()));
        break;
      } else if (cursor_.peek() != 'u') {  // which says nothing new
        break;
      }
    }
    return regex(text_.substr(begin, end - begin), options);
  }

  ExprId regex(std::string_view pattern, RegexOptions options) {
    options.character = character_;
    const auto expr = parse_regex(pattern, grammar_, options);
    if (expr) return *expr;
    cursor_.fail(expr.error().message);
    return grammar_.nothing();
  }

  // ? in the next line belongs to the next rule's name.
  ExprId quantified(ExprId item) {
    while (!cursor_.failed()) {
      cursor_.skip_blanks();
      if (cursor_.take("*")) {
        item = grammar_.repeat(item, 0, kUnbounded);
      } else if (cursor_.take("+")) {
        item = grammar_.repeat(item, 1, kUnbounded);
      } else if (cursor_.take("?")) {
        item = grammar_.optional(item);
      } else if (cursor_.take("~")) {
        cursor_.skip_blanks();
        const auto min = cursor_.number();
        cursor_.skip_blanks();
        const bool range = cursor_.take("..");
        cursor_.skip_blanks();
        const auto max = range ? cursor_.number() : min;
        if (!min || !max || *max < *min) cursor_.fail("a repetition is ~n or ~n..m");
        if (!cursor_.failed()) item = grammar_.repeat(item, *min, *max);
      } else {
        break;
      }
    }
    return item;
  }

  Cursor cursor_;
  std::string_view text_;
  Grammar& grammar_;
  CharacterOf character_;
  NamedRules rules_;
  RuleId ignored_;
  bool ignores_;
  bool in_terminal_ = false;
  std::vector<ExprId> ignore_options_;
};

}  // namespace

Result<ExprId> parse_lark(std::string_view text, Grammar& grammar, CharacterOf character) {
  if (!character) character = [&grammar](const CodePointSet& set) { return grammar.chars(set); };
  return LarkParser(text, grammar, std::move(character)).run();
}

}  // namespace braid::grammar
