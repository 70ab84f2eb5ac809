// Regular expression → term. It is parsed into a grammar of characters, where calls of rules stand for look-aheads; these bind what
// follows them, so that terms are made back to front.
#include "grammar/regex.h"
#include "grammar/text_language.h"

#include <algorithm>
#include <map>

namespace braid::grammar {
namespace {

constexpr std::uint32_t kMaxUnrolled = 16;  // repetitions of a group that looks ahead
constexpr std::size_t kMaxMade = 50'000;    // terms of one expression

class Translation {
 public:
  Translation(TextLanguages& languages, const Grammar& parsed, const std::map<RuleId, bool>& negative)
      : languages_(languages), parsed_(parsed), negative_(negative) {}

  // The texts of `id` before those of `next`; nothing of use once failed().
  TextLanguages::Id before(ExprId id, TextLanguages::Id next) {
    if (++made_ > kMaxMade) failed_ = true;
    if (failed_) return languages_.nothing();
    const Expr& expr = parsed_.expr(id);
    switch (expr.kind) {
      case ExprKind::kChars:
        return languages_.sequence(languages_.chars(expr.chars), next);
      case ExprKind::kSequence:
        for (auto child = expr.children.rbegin(); child != expr.children.rend(); ++child) next = before(*child, next);
        return next;
      case ExprKind::kChoice:
        return choice(expr, next);
      case ExprKind::kRepeat:
        return repeat(expr, next);
      case ExprKind::kRule: {
        const TextLanguages::Id rest = before(parsed_.rule(expr.rule).body, languages_.empty());
        return languages_.both({next, negative_.at(expr.rule) ? languages_.complement(rest) : rest});
      }
      case ExprKind::kBytes:
      case ExprKind::kUntil:
      case ExprKind::kWithout:
      case ExprKind::kGraph:
        break;  // the parser makes none of these
    }
    failed_ = true;
    return languages_.nothing();
  }

  bool failed() const { return failed_; }

 private:
  bool looks_ahead(ExprId id) const {
    const Expr& expr = parsed_.expr(id);
    return expr.kind == ExprKind::kRule ||
           std::any_of(expr.children.begin(), expr.children.end(), [&](ExprId child) { return looks_ahead(child); });
  }

  TextLanguages::Id choice(const Expr& expr, TextLanguages::Id next) {
    const bool ahead = std::any_of(expr.children.begin(), expr.children.end(), [&](ExprId child) { return looks_ahead(child); });
    std::vector<TextLanguages::Id> options;
    for (const ExprId child : expr.children) options.push_back(before(child, ahead ? next : languages_.empty()));
    const TextLanguages::Id either = languages_.either(std::move(options));
    return ahead ? either : languages_.sequence(either, next);
  }

  TextLanguages::Id repeat(const Expr& expr, TextLanguages::Id next) {
    const ExprId child = expr.children.front();
    if (!looks_ahead(child)) return languages_.sequence(languages_.repeat(before(child, languages_.empty()), expr.min, expr.max), next);
    if (expr.max > kMaxUnrolled) failed_ = true;
    TextLanguages::Id out = next;
    for (std::uint32_t i = expr.min; !failed_ && i < expr.max; ++i) out = languages_.either({next, before(child, out)});
    for (std::uint32_t i = 0; !failed_ && i < expr.min; ++i) out = before(child, out);
    return out;
  }

  TextLanguages& languages_;
  const Grammar& parsed_;
  const std::map<RuleId, bool>& negative_;
  std::size_t made_ = 0;
  bool failed_ = false;
};

}  // namespace

Result<TextLanguages::Id> TextLanguages::regex(std::string_view pattern, bool in_doubt) {
  Grammar parsed;
  std::map<RuleId, bool> negative;
  RegexOptions options;
  options.whole = false;
  options.counts_from_zero = false;
  options.in_doubt = in_doubt;
  options.character = [&](const CodePointSet& set) { return parsed.chars(set); };
  options.ahead = [&](ExprId body, bool not_) {
    const RuleId rule = parsed.declare("look-ahead");
    parsed.define(rule, body);
    negative.emplace(rule, not_);
    return parsed.call(rule);
  };
  const auto expr = parse_regex(pattern, parsed, options);
  if (!expr) return expr.error();
  Translation translation(*this, parsed, negative);
  const Id term = translation.before(*expr, empty());
  if (translation.failed()) return invalid_argument("the regular expression is too large, or looks ahead in a repetition");
  return term;
}

}  // namespace braid::grammar
