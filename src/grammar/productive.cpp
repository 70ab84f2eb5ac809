#include "grammar/productive.h"

#include <algorithm>
#include <vector>

namespace braid::grammar {
namespace {

bool is_productive(const Grammar& grammar, const Expr& expr, const std::vector<bool>& productive) {
  const auto child_is = [&](ExprId child) { return bool{productive[child]}; };
  switch (expr.kind) {
    case ExprKind::kBytes:
    case ExprKind::kUntil:
    case ExprKind::kWithout:
      break;
    case ExprKind::kChars:
      return !expr.chars.empty();
    case ExprKind::kSequence:
      return std::all_of(expr.children.begin(), expr.children.end(), child_is);
    case ExprKind::kChoice:
      return std::any_of(expr.children.begin(), expr.children.end(), child_is);
    case ExprKind::kRepeat:
      return expr.min == 0 || child_is(expr.children.front());
    case ExprKind::kRule:
      return productive[grammar.rule(expr.rule).body];
    case ExprKind::kGraph:  // all its states are reached
      return !expr.accepting.empty();
  }
  return true;
}

}  // namespace

std::vector<bool> find_productive(const Grammar& grammar) {
  std::vector<bool> productive(grammar.expr_count(), false);
  for (bool changed = true; changed;) {  // children are made before their parents: only rules take further rounds
    changed = false;
    for (ExprId id = 0; id < grammar.expr_count(); ++id)
      if (!productive[id] && is_productive(grammar, grammar.expr(id), productive)) productive[id] = changed = true;
  }
  return productive;
}

}  // namespace braid::grammar
