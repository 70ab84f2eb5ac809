#include "grammar/grammar.h"

#include <utility>

namespace braid::grammar {

ExprId Grammar::add(Expr expr) {
  exprs_.push_back(std::move(expr));
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Grammar::bytes(std::string_view text) {
  Expr expr;
  expr.kind = ExprKind::kBytes;
  expr.bytes = text;
  return add(std::move(expr));
}

ExprId Grammar::chars(CodePointSet set) {
  Expr expr;
  expr.kind = ExprKind::kChars;
  expr.chars = std::move(set);
  return add(std::move(expr));
}

ExprId Grammar::sequence(std::vector<ExprId> children) {
  if (children.size() == 1) return children.front();
  Expr expr;
  expr.kind = ExprKind::kSequence;
  expr.children = std::move(children);
  return add(std::move(expr));
}

ExprId Grammar::choice(std::vector<ExprId> children) {
  if (children.size() == 1) return children.front();
  Expr expr;
  expr.kind = ExprKind::kChoice;
  expr.children = std::move(children);
  return add(std::move(expr));
}

ExprId Grammar::repeat(ExprId child, std::uint32_t min, std::uint32_t max) {
  if (min == 1 && max == 1) return child;
  Expr expr;
  expr.kind = ExprKind::kRepeat;
  expr.children = {child};
  expr.min = min;
  expr.max = max;
  return add(std::move(expr));
}

ExprId Grammar::until(std::vector<std::string> words) {
  Expr expr;
  expr.kind = ExprKind::kUntil;
  expr.words = std::move(words);
  return add(std::move(expr));
}

ExprId Grammar::graph(std::vector<GraphEdge> edges, std::vector<std::uint32_t> accepting) {
  Expr expr;
  expr.kind = ExprKind::kGraph;
  for (const GraphEdge& edge : edges) expr.children.push_back(edge.label);
  expr.edges = std::move(edges);
  expr.accepting = std::move(accepting);
  return add(std::move(expr));
}

ExprId Grammar::without(std::vector<std::string> words, std::string_view not_first) {
  Expr expr;
  expr.kind = ExprKind::kWithout;
  expr.words = std::move(words);
  expr.bytes = not_first;
  return add(std::move(expr));
}

RuleId Grammar::declare(std::string name) {
  rules_.push_back({std::move(name), 0});
  return static_cast<RuleId>(rules_.size() - 1);
}

ExprId Grammar::call(RuleId rule) {
  Expr expr;
  expr.kind = ExprKind::kRule;
  expr.rule = rule;
  return add(std::move(expr));
}

}  // namespace braid::grammar
