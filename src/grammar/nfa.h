// The nondeterministic automaton of one rule, built from its expression.
#pragma once

#include "grammar/build.h"
#include "grammar/grammar.h"
#include "grammar/measure.h"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace braid::grammar {

// What becomes a rule of the automaton: an expression, or a counted repetition of another unit.
struct Unit {
  ExprId expr = 0;
  bool counted = false;
  std::uint32_t body = 0;  // unit; counted only
  std::uint32_t min = 0;
  std::uint32_t max = 0;
};

// Which calls are replaced by the rule's body: those of small rules, or also the alternatives of large choices. Such a choice is a
// unit of its own, so that each body is taken in once for a choice, wherever that stands.
enum class Inlining : std::uint8_t { kSmall, kBranches };

// Numbers the units as they are called for.
class Units {
 public:
  std::uint32_t of_expr(ExprId expr);
  std::uint32_t of_repeat(ExprId body, std::uint32_t min, std::uint32_t max);
  std::size_t size() const { return units_.size(); }
  const Unit& operator[](std::size_t unit) const { return units_[unit]; }

 private:
  std::vector<Unit> units_;
  std::map<ExprId, std::uint32_t> by_expr_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> by_repeat_;
};

struct NfaNode {
  struct Bytes {
    std::uint8_t first, last;
    std::uint32_t target;
  };
  struct Call {
    std::uint32_t unit;
    std::uint32_t target;
  };
  std::vector<Bytes> bytes;
  std::vector<Call> calls;
  std::vector<std::uint32_t> free;  // targets reached without reading
};

// Expressions are built back to front: each is given the node that follows it, and built once per such node, so that shared
// expressions with one continuation share their nodes.
class NfaBuilder {
 public:
  // Node 0 accepts. With kBranches no rule may be left-recursive.
  NfaBuilder(const Grammar& grammar, const Measure& measure, Units& units, const BuildLimits& limits, Inlining inlining);

  // The node from which `expr` leads to acceptance; meaningless when overflowed().
  std::uint32_t build(ExprId expr) { return inlining_ == Inlining::kBranches ? build_branch(expr, 0) : build(expr, 0); }
  bool overflowed() const { return overflowed_; }
  const std::vector<NfaNode>& nodes() const { return nodes_; }

 private:
  std::uint32_t build(ExprId id, std::uint32_t next);
  std::uint32_t build_new(const Expr& expr, std::uint32_t next);
  std::uint32_t build_branch(ExprId id, std::uint32_t next);
  bool is_large_choice(const Expr& expr) const;
  std::uint32_t build_bytes(const std::string& bytes, std::uint32_t next);
  std::uint32_t build_chars(const CodePointSet& chars, std::uint32_t next);
  std::uint32_t build_repeat(const Expr& expr, std::uint32_t next);
  std::uint32_t build_words(const Expr& expr, std::uint32_t next);
  std::uint32_t build_graph(const Expr& expr, std::uint32_t next);
  std::uint32_t call(std::uint32_t unit, std::uint32_t next);
  std::uint32_t add();

  const Grammar& grammar_;
  const Measure& measure_;
  Units& units_;
  std::size_t node_limit_;
  Inlining inlining_;
  std::size_t depth_ = 0;
  bool overflowed_ = false;
  std::vector<NfaNode> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> built_;  // (expression, next) → node
};

}  // namespace braid::grammar
