#include "grammar/build.h"
#include "grammar/ebnf/cursor.h"
#include "grammar/ebnf/grammar_text.h"
#include "grammar/ebnf/rules.h"

#include <fmt/format.h>
#include <vector>

namespace braid::grammar {
namespace {

class GbnfParser {
 public:
  GbnfParser(std::string_view text, Grammar& grammar) : cursor_(text, "#", "#"), grammar_(grammar), rules_(grammar) {}

  Result<ExprId> run() {
    for (cursor_.skip_space(); !cursor_.at_end() && !cursor_.failed(); cursor_.skip_space()) rule();
    if (cursor_.failed()) return cursor_.error();
    if (!rules_.is_defined("root")) return invalid_argument("the grammar has no rule named root");
    if (const auto name = rules_.missing()) return invalid_argument(fmt::format("the grammar has no rule named {}", *name));
    return rules_.call("root");
  }

 private:
  void rule() {
    const std::string_view name = cursor_.name();
    if (name.empty()) return cursor_.fail("a rule's name is expected");
    cursor_.skip_space();
    if (!cursor_.take("::=")) return cursor_.fail("::= is expected");
    const ExprId body = alternatives(0);
    if (!cursor_.failed() && !rules_.define(name, body)) cursor_.fail(fmt::format("the rule {} is defined twice", name));
  }

  ExprId alternatives(std::size_t nesting) {
    std::vector<ExprId> options;
    do {
      options.push_back(sequence(nesting));
      cursor_.skip_space();
    } while (!cursor_.failed() && cursor_.take("|"));
    return grammar_.choice(std::move(options));
  }

  ExprId sequence(std::size_t nesting) {
    std::vector<ExprId> parts;
    for (;;) {
      cursor_.skip_space();
      if (cursor_.failed() || cursor_.at_end() || cursor_.peek() == '|' || cursor_.peek() == ')' || (nesting == 0 && next_rule_begins()))
        break;
      parts.push_back(quantified(atom(nesting)));
    }
    return grammar_.sequence(std::move(parts));
  }

  bool next_rule_begins() {
    const std::size_t begin = cursor_.position();
    const bool named = !cursor_.name().empty();
    cursor_.skip_space();
    const bool begins = named && cursor_.take("::=");
    cursor_.go_to(begin);
    return begins;
  }

  ExprId atom(std::size_t nesting) {
    if (cursor_.take("\"")) return literal();
    if (cursor_.take("[")) return grammar_.chars(char_class());
    if (cursor_.take(".")) return grammar_.chars(CodePointSet::all());
    if (cursor_.take("(")) {
      if (nesting >= kMaxGroupNesting) cursor_.fail("groups nest too deep");
      const ExprId inner = cursor_.failed() ? grammar_.nothing() : alternatives(nesting + 1);
      if (!cursor_.take(")")) cursor_.fail("a group has no end");
      return inner;
    }
    if (cursor_.peek() == '<' || cursor_.peek() == '!') {
      cursor_.fail("references to tokens are not supported");
      return grammar_.nothing();
    }
    const std::string_view name = cursor_.name();
    if (name.empty()) cursor_.fail(fmt::format("'{}' is not expected", cursor_.peek()));
    return cursor_.failed() ? grammar_.nothing() : rules_.call(name);
  }

  ExprId literal() {
    std::string text;
    while (!cursor_.failed() && !cursor_.take("\"")) append_utf8(text, cursor_.character());
    return grammar_.bytes(text);
  }

  CodePointSet char_class() {
    const bool negated = cursor_.take("^");
    std::vector<CodePointRange> ranges;
    while (!cursor_.failed() && !cursor_.take("]")) {
      const std::uint32_t first = cursor_.character();
      const bool range = cursor_.peek() == '-' && cursor_.peek(1) != ']' && cursor_.take("-");
      const std::uint32_t last = range ? cursor_.character() : first;
      if (last < first) cursor_.fail("a range of characters is empty");
      ranges.push_back({first, last});
    }
    CodePointSet set(std::move(ranges));
    return negated ? set.complement() : set;
  }

  ExprId quantified(ExprId item) {
    while (!cursor_.failed()) {
      cursor_.skip_space();
      if (cursor_.take("*")) {
        item = grammar_.repeat(item, 0, kUnbounded);
      } else if (cursor_.take("+")) {
        item = grammar_.repeat(item, 1, kUnbounded);
      } else if (cursor_.take("?")) {
        item = grammar_.optional(item);
      } else if (cursor_.take("{")) {
        item = counted(item);
      } else {
        break;
      }
    }
    return item;
  }

  ExprId counted(ExprId item) {
    cursor_.skip_space();
    const auto least = cursor_.number();
    const std::uint32_t min = least.value_or(0);
    std::uint32_t max = min;
    cursor_.skip_space();
    if (cursor_.take(",")) {
      cursor_.skip_space();
      max = cursor_.number().value_or(kUnbounded);
      cursor_.skip_space();
    }
    if (!cursor_.take("}") || !least || max < min) cursor_.fail("a repetition is {m}, {m,} or {m,n}");
    return cursor_.failed() ? item : grammar_.repeat(item, min, max);
  }

  Cursor cursor_;
  Grammar& grammar_;
  NamedRules rules_;
};

}  // namespace

Result<ExprId> parse_gbnf(std::string_view text, Grammar& grammar) { return GbnfParser(text, grammar).run(); }

namespace {

// Whether the first thing in the text is a rule of GBNF; in Lark ::= may be part of what is matched.
bool is_gbnf(std::string_view text) {
  Cursor cursor(text, "#", "//");
  cursor.skip_space();
  cursor.name();
  cursor.skip_space();
  return cursor.take("::=");
}

}  // namespace

Result<ExprId> parse_grammar_text(std::string_view text, Grammar& grammar) {
  constexpr std::size_t kMaxBytes = 1 << 18;
  if (text.size() > kMaxBytes) return invalid_argument(fmt::format("a grammar may have {} bytes", kMaxBytes));
  auto root = is_gbnf(text) ? parse_gbnf(text, grammar) : parse_lark(text, grammar);
  if (root) remove_direct_left_recursion(grammar);
  return root;
}

}  // namespace braid::grammar
