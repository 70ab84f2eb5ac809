#include "grammar/build.h"

#include "grammar/depth.h"
#include "grammar/determinise.h"
#include "grammar/threads.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace braid::grammar {
namespace {

constexpr std::size_t kFewThreads = Threads::kMaxThreads / 4;

// Turns a Dfa into an automaton: marks what can reach its rule's end, drops the rest, numbers what is left.
class Assembly {
 public:
  explicit Assembly(const Dfa& dfa) : dfa_(dfa), productive_(dfa.states.size(), false), nullable_(dfa.states.size(), false) {
    mark(productive_, true);
    mark(nullable_, false);
  }

  bool matches_anything() const { return productive_[dfa_.unit_start.front()]; }

  // Whether some unit can call itself before a byte is read.
  bool left_recursive() const {
    enum class Colour : std::uint8_t { kNew, kOpen, kDone };
    std::vector<Colour> colours(dfa_.units.size(), Colour::kNew);
    std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> path;
    const auto open = [&](std::uint32_t unit) {
      colours[unit] = Colour::kOpen;
      path.emplace_back(unit, leading_units(unit));
    };
    for (std::uint32_t root = 0; root < dfa_.units.size(); ++root) {
      if (colours[root] == Colour::kNew) open(root);
      while (!path.empty()) {
        auto& [unit, left] = path.back();
        if (left.empty()) {
          colours[unit] = Colour::kDone;
          path.pop_back();
          continue;
        }
        const std::uint32_t next = left.back();
        left.pop_back();
        if (colours[next] == Colour::kOpen) return true;
        if (colours[next] == Colour::kNew) open(next);
      }
    }
    return false;
  }

  Automaton assemble() const {
    Automaton out;
    std::vector<StateId> number(dfa_.states.size(), kNoState);
    std::vector<StateId> order;
    const auto number_of = [&](StateId id) {
      if (number[id] == kNoState) {
        number[id] = static_cast<StateId>(order.size());
        order.push_back(id);
      }
      return number[id];
    };
    out.start = number_of(dfa_.unit_start.front());
    for (std::size_t i = 0; i < order.size(); ++i) out.states.push_back(emit(order[i], number_of, out));
    out.rules = static_cast<std::uint32_t>(dfa_.units.size());
    std::map<StateId, StateId> first_loop;  // by body
    for (StateId id = 0; id < out.states.size(); ++id)
      if (out.states[id].loop != kNoState) {
        Loop& loop = out.loops[out.states[id].loop];
        loop.twin = first_loop.try_emplace(loop.body, id).first->second;
      }
    return out;
  }

 private:
  StateId start_of(std::uint32_t unit) const { return dfa_.unit_start[unit]; }
  const Unit& counted(const DfaState& state) const { return dfa_.units[state.counted]; }

  // Which states reach their rule's end; with `by_reading` also by bytes, otherwise by calls of rules that may match nothing only.
  void mark(std::vector<bool>& marks, bool by_reading) const {
    const auto reaches = [&](const DfaState& state) {
      if (state.final) return true;
      if (state.counted != kNoState) return counted(state).min == 0 || bool{marks[start_of(counted(state).body)]};
      if (by_reading && std::any_of(state.bytes.begin(), state.bytes.end(), [&](const ByteEdge& e) { return bool{marks[e.target]}; }))
        return true;
      return std::any_of(state.calls.begin(), state.calls.end(),
                         [&](const auto& call) { return marks[start_of(call.first)] && marks[call.second]; });
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = marks.size(); i-- > 0;)
        if (!marks[i] && reaches(dfa_.states[i])) marks[i] = changed = true;
    }
  }

  // The units that `unit` calls before it has read a byte.
  std::vector<std::uint32_t> leading_units(std::uint32_t unit) const {
    std::vector<std::uint32_t> out;
    std::vector<StateId> states = {start_of(unit)};
    for (std::size_t i = 0; i < states.size(); ++i) {
      const DfaState& state = dfa_.states[states[i]];
      if (state.counted != kNoState) out.push_back(counted(state).body);
      for (const auto& [callee, next] : state.calls) {
        out.push_back(callee);
        if (nullable_[start_of(callee)] && std::find(states.begin(), states.end(), next) == states.end()) states.push_back(next);
      }
    }
    return out;
  }

  template <class NumberOf>
  State emit(StateId id, NumberOf& number_of, Automaton& out) const {
    const DfaState& from = dfa_.states[id];
    State state;
    // The states of a unit lie together, its start first.
    state.rule =
        static_cast<std::uint32_t>(std::upper_bound(dfa_.unit_start.begin(), dfa_.unit_start.end(), id) - dfa_.unit_start.begin() - 1);
    state.bytes_begin = static_cast<std::uint32_t>(out.byte_edges.size());
    for (const ByteEdge& edge : from.bytes)
      if (productive_[edge.target]) out.byte_edges.push_back({edge.first, edge.last, number_of(edge.target)});
    state.bytes_end = static_cast<std::uint32_t>(out.byte_edges.size());
    state.calls_begin = static_cast<std::uint32_t>(out.call_edges.size());
    for (const auto& [unit, next] : from.calls) {
      if (!productive_[start_of(unit)] || !productive_[next]) continue;
      const DfaState& after = dfa_.states[next];
      const bool tail = after.final && after.bytes.empty() && after.calls.empty() && after.counted == kNoState;
      out.call_edges.push_back({number_of(start_of(unit)), number_of(next), tail});
    }
    state.calls_end = static_cast<std::uint32_t>(out.call_edges.size());
    if (from.counted != kNoState) {
      const Unit& unit = counted(from);
      const bool possible = productive_[start_of(unit.body)];
      state.loop = static_cast<std::uint32_t>(out.loops.size());
      out.loops.push_back({number_of(start_of(unit.body)), unit.min, possible ? unit.max : 0, 0});
    }
    state.final = from.final;
    state.plain = !state.final && state.calls_begin == state.calls_end && state.loop == kNoState;
    state.forwards =
        !state.final && state.loop == kNoState && state.bytes_begin == state.bytes_end && state.calls_begin + 1 == state.calls_end;
    return state;
  }

  const Dfa& dfa_;
  std::vector<bool> productive_;
  std::vector<bool> nullable_;
};

Result<Automaton> build_with(Inlining inlining, const Grammar& grammar, ExprId root, const BuildLimits& limits) {
  const Dfa dfa = determinise(grammar, root, limits, inlining);
  if (dfa.overflowed) return invalid_argument(fmt::format("the constraint is too large: it needs more than {} states", limits.states));
  const Assembly assembly(dfa);
  if (!assembly.matches_anything()) return invalid_argument("no finite text satisfies the constraint");
  if (assembly.left_recursive()) return invalid_argument("a rule begins with itself through another rule (left recursion)");
  Automaton automaton = assembly.assemble();
  const auto depths = least_depths(automaton, Threads::kMaxDepth + 1);
  for (StateId id = 0; id < automaton.states.size(); ++id) automaton.states[id].depth = depths[id];
  if (depths[automaton.start] > Threads::kMaxDepth)
    return invalid_argument(fmt::format("every text nests deeper than {} rules", Threads::kMaxDepth));
  return automaton;
}

// The most threads that a state makes with what it calls; more than kMaxThreads are not told apart.
std::size_t most_threads(const Automaton& automaton) {
  Threads threads(automaton, Threads::Scope::kWithin);
  for (StateId id = 0; id < automaton.states.size(); ++id) {
    if (automaton.states[id].plain) continue;
    threads.clear();
    threads.push_state(id, 0, kBottom);
  }
  return threads.take_widest();
}

}  // namespace

// Rules stay calls, which keeps automata small, unless so many begin at one place that following them all costs too much or is
// impossible: then the alternatives of choices are merged, as far as sizes allow.
Result<Automaton> build(const Grammar& grammar, ExprId root, const BuildLimits& limits) {
  auto automaton = build_with(Inlining::kSmall, grammar, root, limits);
  if (!automaton) return automaton;
  std::size_t threads = most_threads(*automaton);
  if (threads > kFewThreads) {
    auto merged = build_with(Inlining::kBranches, grammar, root, limits);
    if (const std::size_t fewer = merged ? most_threads(*merged) : threads; fewer < threads) {
      automaton = std::move(merged);
      threads = fewer;
    }
  }
  if (threads > Threads::kMaxThreads)
    return invalid_argument(fmt::format("too many rules can begin at one place: more than {} are not followed", Threads::kMaxThreads));
  return automaton;
}

void remove_direct_left_recursion(Grammar& grammar) {
  for (RuleId rule = 0; rule < grammar.rule_count(); ++rule) {
    const ExprId body = grammar.rule(rule).body;
    const std::vector<ExprId> alternatives =
        grammar.expr(body).kind == ExprKind::kChoice ? grammar.expr(body).children : std::vector<ExprId>{body};
    const auto calls_itself = [&](ExprId id) { return grammar.expr(id).kind == ExprKind::kRule && grammar.expr(id).rule == rule; };
    std::vector<ExprId> first;
    std::vector<ExprId> rest;
    for (const ExprId alternative : alternatives) {
      const Expr& expr = grammar.expr(alternative);
      if (calls_itself(alternative)) continue;  // A = A adds nothing
      if (expr.kind == ExprKind::kSequence && !expr.children.empty() && calls_itself(expr.children.front())) {
        rest.push_back(grammar.sequence({expr.children.begin() + 1, expr.children.end()}));
      } else {
        first.push_back(alternative);
      }
    }
    if (first.size() == alternatives.size()) continue;
    const ExprId begin = grammar.choice(std::move(first));
    const ExprId more = grammar.repeat(grammar.choice(std::move(rest)), 0, kUnbounded);
    grammar.define(rule, grammar.sequence({begin, more}));
  }
}

}  // namespace braid::grammar
