// What building an automaton must know of a grammar's expressions beforehand.
#pragma once

#include "grammar/grammar.h"

#include <cstdint>
#include <vector>

namespace braid::grammar {

class Measure {
 public:
  explicit Measure(const Grammar& grammar);

  // Whether the expression matches the empty text.
  bool nullable(ExprId expr) const { return nullable_[expr]; }
  // About how many states the expression takes. Saturates at kHeavy.
  std::uint32_t weight(ExprId expr) const { return weight_[expr]; }
  // Whether calls of the rule are replaced by its body: it is small and leads to no cycle.
  bool inlined(RuleId rule) const { return inlined_[rule]; }

  static constexpr std::uint32_t kHeavy = 1U << 20;

 private:
  void find_nullable();
  void weigh();
  std::uint32_t own_weight(const Expr& expr) const;

  const Grammar& grammar_;
  std::vector<bool> nullable_;         // by expression
  std::vector<std::uint32_t> weight_;  // by expression
  std::vector<bool> inlined_;          // by rule
};

}  // namespace braid::grammar
