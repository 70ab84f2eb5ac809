#include "grammar/measure.h"

#include <algorithm>

namespace braid::grammar {
namespace {

constexpr std::uint32_t kInlineWeight = 32;
constexpr std::uint32_t kWideWeight = 10;  // of a set with characters of several bytes, and of a call

}  // namespace

// Children are created before their parents, so one pass in order of ids settles everything but calls.
Measure::Measure(const Grammar& grammar)
    : grammar_(grammar), nullable_(grammar.expr_count(), false), weight_(grammar.expr_count(), kHeavy),
      inlined_(grammar.rule_count(), false) {
  find_nullable();
  weigh();
}

void Measure::find_nullable() {
  for (bool changed = true; changed;) {
    changed = false;
    for (ExprId id = 0; id < grammar_.expr_count(); ++id) {
      const Expr& expr = grammar_.expr(id);
      const auto child_is = [&](ExprId child) { return nullable_[child]; };
      bool now = false;
      switch (expr.kind) {
        case ExprKind::kBytes:
          now = expr.bytes.empty();
          break;
        case ExprKind::kChars:
        case ExprKind::kUntil:
          break;
        case ExprKind::kSequence:
          now = std::all_of(expr.children.begin(), expr.children.end(), child_is);
          break;
        case ExprKind::kChoice:
          now = std::any_of(expr.children.begin(), expr.children.end(), child_is);
          break;
        case ExprKind::kRepeat:
          now = expr.min == 0 || nullable_[expr.children.front()];
          break;
        case ExprKind::kWithout:
          now = true;
          break;
        case ExprKind::kGraph:
          now = std::find(expr.accepting.begin(), expr.accepting.end(), 0U) != expr.accepting.end();
          break;
        case ExprKind::kRule:
          now = nullable_[grammar_.rule(expr.rule).body];
          break;
      }
      if (now && !nullable_[id]) nullable_[id] = changed = true;
    }
  }
}

std::uint32_t Measure::own_weight(const Expr& expr) const {
  std::uint64_t sum = 1;
  switch (expr.kind) {
    case ExprKind::kBytes:
      sum = expr.bytes.size();
      break;
    case ExprKind::kUntil:
    case ExprKind::kWithout:
      for (const std::string& word : expr.words) sum += word.size();
      break;
    case ExprKind::kChars:
      sum = !expr.chars.empty() && expr.chars.ranges().back().last > 0x7F ? kWideWeight : 1;
      break;
    case ExprKind::kSequence:
    case ExprKind::kChoice:
    case ExprKind::kGraph:
      for (const ExprId child : expr.children) sum += weight_[child];
      break;
    case ExprKind::kRepeat: {
      const std::uint64_t times = expr.max == kUnbounded ? std::uint64_t{expr.min} + 1 : expr.max;
      sum = 1 + std::uint64_t{weight_[expr.children.front()]} * times;
      break;
    }
    case ExprKind::kRule:
      sum = inlined_[expr.rule] ? weight_[grammar_.rule(expr.rule).body] : kWideWeight;
      break;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, kHeavy));
}

// A rule is inlined when all rules it calls are; starting from none, a rule of a cycle never gets there.
void Measure::weigh() {
  std::vector<bool> calls_only_inlined(grammar_.expr_count(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (ExprId id = 0; id < grammar_.expr_count(); ++id) {
      const Expr& expr = grammar_.expr(id);
      calls_only_inlined[id] = expr.kind == ExprKind::kRule ? bool{inlined_[expr.rule]}
                                                            : std::all_of(expr.children.begin(), expr.children.end(),
                                                                          [&](ExprId c) { return bool{calls_only_inlined[c]}; });
      weight_[id] = own_weight(expr);
    }
    for (RuleId rule = 0; rule < grammar_.rule_count(); ++rule) {
      const ExprId body = grammar_.rule(rule).body;
      if (!inlined_[rule] && calls_only_inlined[body] && weight_[body] <= kInlineWeight) inlined_[rule] = changed = true;
    }
  }
}

}  // namespace braid::grammar
