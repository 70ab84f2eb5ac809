#include "grammar/regex.h"

#include "grammar/regex_classes.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::grammar {
namespace {

constexpr std::size_t kMaxNesting = 100;
constexpr std::uint32_t kMaxRepeat = 100'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

CodePointSet with_both_cases(const CodePointSet& set) {
  std::vector<CodePointRange> more;
  for (std::uint32_t c = 'a'; c <= 'z'; ++c) {
    const std::uint32_t upper = c - 'a' + 'A';
    if (set.contains(c)) more.push_back({upper, upper});
    if (set.contains(upper)) more.push_back({c, c});
  }
  return set.united(CodePointSet(std::move(more)));
}

// Recursive descent. The first thing that is not understood is kept in `error_` and ends the parse.
class Parser {
 public:
  Parser(std::string_view pattern, Grammar& grammar, const RegexOptions& options)
      : pattern_(pattern), grammar_(grammar), options_(options), in_doubt_(options.in_doubt) {}

  Result<ExprId> run() {
    std::vector<ExprId> options;
    do options.push_back(outer_alternative());
    while (!error_ && take('|'));
    if (!error_ && !at_end()) fail("an unmatched )");
    if (error_) return invalid_argument(*error_);
    return grammar_.choice(std::move(options));
  }

 private:
  bool at_end() const { return at_ >= pattern_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_end() || peek() != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view text) {
    if (pattern_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  void fail(std::string_view what) {
    if (!error_) error_ = fmt::format("the regular expression has {} at position {}, which is not supported", what, at_);
  }

  ExprId character(CodePointSet set) { return options_.character(options_.ignore_case ? with_both_cases(set) : set); }
  ExprId anything() { return grammar_.repeat(options_.character(CodePointSet::all()), 0, kUnbounded); }

  ExprId outer_alternative() {
    const bool from_start = take('^') || options_.whole;
    begin_ = from_start && !options_.whole ? at_ : std::string_view::npos;
    ExprId body = sequence();
    const bool anchored = take('$');
    const bool to_end = anchored || options_.whole;
    if (!at_end() && peek() != '|' && peek() != ')') fail("an anchor in the middle");
    std::vector<ExprId> parts;
    if (!from_start) parts.push_back(anything());
    parts.push_back(body);
    if (anchored && in_doubt_) parts.push_back(end_of_text());
    if (!to_end) parts.push_back(anything());
    return grammar_.sequence(std::move(parts));
  }

  ExprId alternatives() {
    std::vector<ExprId> options;
    do options.push_back(sequence());
    while (!error_ && take('|'));
    return grammar_.choice(std::move(options));
  }

  ExprId sequence() {
    std::vector<ExprId> parts;
    while (!error_ && !at_end() && peek() != '|' && peek() != ')') {
      if (peek() != '$') {
        parts.push_back(quantified());
      } else if (options_.ahead && !ends_outer_alternative()) {
        ++at_;
        parts.push_back(options_.ahead(end_of_text(), false));
      } else {
        break;
      }
    }
    return grammar_.sequence(std::move(parts));
  }

  // Whether the $ here is the last of an alternative that is in no group.
  bool ends_outer_alternative() const { return nesting_ == 0 && (peek(1) == '|' || at_ + 1 == pattern_.size()); }

  // Some dialects see the end before a line feed, too.
  ExprId end_of_text() { return in_doubt_ ? grammar_.optional(options_.character(CodePointSet::of("\n"))) : grammar_.empty(); }

  // The body of a look-ahead, behind its (?= or (?!.
  ExprId look_ahead(bool negative) {
    const bool at_begin = at_ - 3 == begin_;
    if (negative) in_doubt_ = !in_doubt_;
    std::vector<ExprId> options;
    do {
      if (peek() == '^' && !at_begin) fail("an anchor in the middle");
      if (at_begin) take('^');
      std::vector<ExprId> parts = {sequence()};  // reads a $, too
      parts.push_back(anything());
      options.push_back(grammar_.sequence(std::move(parts)));
    } while (!error_ && take('|'));
    if (negative) in_doubt_ = !in_doubt_;
    return options_.ahead(grammar_.choice(std::move(options)), negative);
  }

  ExprId quantified() {
    ExprId item = atom();
    for (bool first = true; !error_; first = false) {
      std::uint32_t min = 0;
      std::uint32_t max = kUnbounded;
      if (take('*')) {
      } else if (take('+')) {
        min = 1;
      } else if (take('?')) {
        max = 1;
      } else if (!(peek() == '{' && counts(min, max))) {
        return item;
      }
      if (!first) fail("a quantifier after a quantifier");
      take('?');  // a lazy quantifier matches the same texts
      if (peek() == '+') fail("a possessive quantifier");
      item = grammar_.repeat(item, min, max);
    }
    return item;
  }

  // {m}, {m,} or {m,n}, with the option also {,n} and {,}; anything else is a literal brace.
  bool counts(std::uint32_t& min, std::uint32_t& max) {
    const std::size_t begin = at_++;
    auto low = decimal();
    if (!low && options_.counts_from_zero && peek() == ',') low = 0;
    if (low && take('}')) {
      min = max = *low;
      return check(min, max);
    }
    if (low && take(',')) {
      if (take('}')) {
        min = *low;
        return check(min, min);
      }
      const auto high = decimal();
      if (high && take('}')) {
        min = *low;
        max = *high;
        return check(min, max);
      }
    }
    at_ = begin;
    return false;
  }

  bool check(std::uint32_t min, std::uint32_t max) {
    if (min > max) fail("a quantifier whose least count is above its most");
    if (max > kMaxRepeat) fail(fmt::format("a count above {}", kMaxRepeat));
    return true;
  }

  std::optional<std::uint32_t> decimal() {
    const std::size_t begin = at_;
    std::uint32_t value = 0;
    while (is_digit(peek())) value = std::min(kMaxRepeat + 1, value * 10 + static_cast<std::uint32_t>(pattern_[at_++] - '0'));
    return at_ == begin ? std::nullopt : std::optional(value);
  }

  ExprId atom() {
    if (peek() == '(') return group();
    if (peek() == '[') return character(bracket());
    if (peek() == '^') fail("an anchor in the middle");
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    if (peek() == '*' || peek() == '+' || peek() == '?' || (peek() == '{' && counts(min, max)))
      fail("a quantifier without anything to repeat");
    if (take('.')) return character(options_.dot_all || in_doubt_ ? CodePointSet::all() : line_terminators().complement());
    if (peek() == '\\') return character(escape(false));
    return character(literal());
  }

  ExprId group() {
    ++at_;
    if (++nesting_ > kMaxNesting) fail("groups nested too deep");
    const ExprId inner = error_ ? grammar_.nothing() : group_body();
    --nesting_;
    if (peek() == '$') fail("an anchor in the middle");
    if (!error_ && !take(')')) fail("a group without an end");
    return inner;
  }

  ExprId group_body() {
    if (options_.ahead && (peek() == '?' && (peek(1) == '=' || peek(1) == '!'))) {
      at_ += 2;
      return look_ahead(pattern_[at_ - 1] == '!');
    }
    if (take("?<") || take("?P<")) {
      if (peek() == '=' || peek() == '!') fail("a look-behind");
      while (!at_end() && peek() != '>') ++at_;
      if (!take('>')) fail("a group name without an end");
    } else if (!take("?:") && peek() == '?') {
      fail(peek(1) == '=' || peek(1) == '!' ? "a look-ahead" : "a group of an unknown kind");
    }
    return error_ ? grammar_.nothing() : alternatives();
  }

  CodePointSet literal() {
    std::uint32_t point = 0;
    if (!next_code_point(pattern_, at_, point)) fail("bytes that are not UTF-8");
    return CodePointSet({{point, point}});
  }

  CodePointSet bracket() {
    ++at_;
    const bool negated = take('^');
    in_negated_ = negated;
    CodePointSet set;
    for (bool first = true; !error_; first = false) {
      if (at_end()) fail("a character class without an end");
      if (first && peek() == ']') fail("a ] at the start of a class without a backslash");  // JavaScript and the others disagree
      if (take(']')) break;
      if (error_) break;
      if (peek() == '[' && (peek(1) == ':' || peek(1) == '.' || peek(1) == '=')) fail("a POSIX class");
      CodePointSet low = peek() == '\\' ? escape(true) : literal();
      if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') low = range(low);
      set = set.united(low);
    }
    in_negated_ = false;
    if (options_.ignore_case) set = with_both_cases(set);
    return negated ? set.complement() : set;
  }

  CodePointSet range(const CodePointSet& low) {
    ++at_;
    const CodePointSet high = peek() == '\\' ? escape(true) : literal();
    const auto single = [](const CodePointSet& set) {
      return set.ranges().size() == 1 && set.ranges().front().first == set.ranges().front().last;
    };
    if (!single(low) || !single(high) || low.ranges().front().first > high.ranges().front().first) {
      fail("a range of characters that is none");
      return {};
    }
    return CodePointSet({{low.ranges().front().first, high.ranges().front().first}});
  }

  CodePointSet escape(bool in_class) {
    ++at_;
    if (at_end()) {
      fail("a backslash at its end");
      return {};
    }
    const char c = peek();
    if (const auto set = shorthand(c, in_class)) {
      ++at_;
      return *set;
    }
    if (c == 'p' && !in_doubt_ && !in_negated_) {
      ++at_;
      return property();
    }
    if (c == 'x') {
      ++at_;
      return hexadecimal(2);
    }
    if (c == 'u') {
      ++at_;
      return take('{') ? hexadecimal(0) : hexadecimal(4);
    }
    if (is_digit(c)) {
      fail("a back-reference or octal escape");
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      fail(fmt::format("\\{}", c));
    } else {
      return literal();
    }
    return {};
  }

  // What one character behind a backslash stands for; nothing where it takes more, or has no such meaning.
  std::optional<CodePointSet> shorthand(char c, bool in_class) const {
    const auto one = [](std::uint32_t point) { return CodePointSet({{point, point}}); };
    switch (c) {
      case 'd':
        return digit_class().set(in_negated_ != in_doubt_);
      case 'D':
        return digit_class().opposite(in_negated_ != in_doubt_);
      case 'w':
        return word_class().set(in_negated_ != in_doubt_);
      case 'W':
        return word_class().opposite(in_negated_ != in_doubt_);
      case 's':
        return space_class().set(in_negated_ != in_doubt_);
      case 'S':
        return space_class().opposite(in_negated_ != in_doubt_);
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'b':
        return in_class ? std::optional(one('\b')) : std::nullopt;
      case '0':
        return is_digit(peek(1)) ? std::nullopt : std::optional(one(0));
      default:
        return std::nullopt;
    }
  }

  CodePointSet property() {
    const std::size_t end = pattern_.find('}', at_);
    const auto set = peek() == '{' && end != std::string_view::npos ? property_set(pattern_.substr(at_ + 1, end - at_ - 1)) : std::nullopt;
    if (!set) {
      fail("an unknown property of characters");
      return {};
    }
    at_ = end + 1;
    return *set;
  }

  // `count` digits, or with 0 any number of them up to a brace.
  CodePointSet hexadecimal(std::size_t count) {
    std::uint32_t point = 0;
    std::size_t read = 0;
    for (; (count == 0 ? read < 6 && peek() != '}' : read < count); ++read, ++at_) {
      const auto digit = hex_digit(peek());
      if (!digit) {
        fail("an escape without its hexadecimal digits");
        return {};
      }
      point = point * 16 + *digit;
    }
    CodePointSet set({{point, point}});
    if ((count == 0 && (read == 0 || !take('}'))) || set.empty()) fail("an escape that names no character");
    return set;
  }

  std::string_view pattern_;
  Grammar& grammar_;
  const RegexOptions& options_;
  std::size_t at_ = 0;
  std::size_t nesting_ = 0;
  std::size_t begin_ = std::string_view::npos;  // where the text begins, if an anchor says so
  bool in_doubt_;                               // what is in doubt is taken in, as within a look-ahead that must not match
  bool in_negated_ = false;                     // within [^…]: what is in doubt is left out of what that matches, so it is taken in here
  std::optional<std::string> error_;
};

}  // namespace

Result<ExprId> parse_regex(std::string_view pattern, Grammar& grammar, const RegexOptions& options) {
  return Parser(pattern, grammar, options).run();
}

}  // namespace braid::grammar
