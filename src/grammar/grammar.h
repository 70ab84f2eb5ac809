// The one intermediate form of every constraint: a context-free grammar whose terminals are bytes and Unicode characters.
// Expressions are shared freely: the same ExprId may stand in many places.
#pragma once

#include "grammar/code_points.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::grammar {

using ExprId = std::uint32_t;
using RuleId = std::uint32_t;

inline constexpr std::uint32_t kUnbounded = ~std::uint32_t{0};

// Never part of UTF-8. In the automaton's alphabet it opens the name of a control token: kControlByte + "<|eom_id|>".
inline constexpr char kControlByte = '\xFF';

enum class ExprKind : std::uint8_t {
  kBytes,     // exactly `bytes`
  kChars,     // one character of `chars`, as UTF-8
  kSequence,  // `children` in order; none: the empty text
  kChoice,    // one of `children`; none: matches nothing
  kRepeat,    // the only child, `min` to `max` times
  kRule,      // rule `rule`
  kUntil,     // any bytes up to and including the first occurrence of one of `words`
  kWithout,   // any bytes in which none of `words` occurs, and whose first one but for white space is none of `bytes`
  kGraph,     // the labels along a way through `edges`, from state 0 to one of `accepting`
};

// An edge of a finite automaton, which reads `label`: an expression that does not match the empty text.
struct GraphEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  ExprId label = 0;
};

struct Expr {
  ExprKind kind = ExprKind::kSequence;
  std::string bytes;
  std::vector<std::string> words;
  CodePointSet chars;
  std::vector<ExprId> children;
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  RuleId rule = 0;
  std::vector<GraphEdge> edges;          // their labels are the children
  std::vector<std::uint32_t> accepting;  // states
};

// Built by one thread, then read only.
class Grammar {
 public:
  ExprId empty() { return sequence({}); }
  ExprId nothing() const { return 0; }
  ExprId bytes(std::string_view text);
  ExprId chars(CodePointSet set);
  ExprId sequence(std::vector<ExprId> children);
  ExprId choice(std::vector<ExprId> children);
  ExprId repeat(ExprId child, std::uint32_t min, std::uint32_t max);  // min <= max; max may be kUnbounded
  ExprId optional(ExprId child) { return repeat(child, 0, 1); }
  ExprId until(std::vector<std::string> words);  // of which none is empty
  ExprId without(std::vector<std::string> words, std::string_view not_first = {});
  ExprId graph(std::vector<GraphEdge> edges, std::vector<std::uint32_t> accepting);

  // A rule may be referred to before it is defined; one that never is matches nothing. `name` appears in error messages.
  RuleId declare(std::string name);
  void define(RuleId rule, ExprId body) { rules_[rule].body = body; }
  ExprId call(RuleId rule);

  struct Rule {
    std::string name;
    ExprId body = 0;  // at first nothing()
  };
  const Expr& expr(ExprId id) const { return exprs_[id]; }
  const Rule& rule(RuleId id) const { return rules_[id]; }
  std::size_t expr_count() const { return exprs_.size(); }
  std::size_t rule_count() const { return rules_.size(); }

 private:
  ExprId add(Expr expr);

  std::vector<Expr> exprs_ = {Expr{ExprKind::kChoice, {}, {}, {}, {}, 0, 0, 0, {}, {}}};
  std::vector<Rule> rules_;
};

}  // namespace braid::grammar
