#include "grammar/determinise.h"

#include <algorithm>
#include <array>

namespace braid::grammar {
namespace {

using NodeSet = std::vector<std::uint32_t>;  // sorted

class Determiniser {
 public:
  Determiniser(Dfa& dfa, const std::vector<NfaNode>& nodes, const BuildLimits& limits, std::size_t& work)
      : dfa_(dfa), nodes_(nodes), limits_(limits), work_(work), seen_(nodes.size(), false) {}

  StateId run(std::uint32_t start) {
    const StateId first = state_of({start});
    for (std::size_t next = 0; next < pending_.size() && !overflowed(); ++next) expand(pending_[next].first, pending_[next].second);
    return first;
  }

 private:
  bool overflowed() {
    if (dfa_.states.size() > limits_.states || work_ > limits_.work) dfa_.overflowed = true;
    return dfa_.overflowed;
  }

  NodeSet closure(NodeSet set) {
    for (const std::uint32_t node : set) seen_[node] = true;
    for (std::size_t i = 0; i < set.size(); ++i)
      for (const std::uint32_t target : nodes_[set[i]].free)
        if (!seen_[target]) {
          seen_[target] = true;
          set.push_back(target);
        }
    for (const std::uint32_t node : set) seen_[node] = false;
    work_ += set.size();
    // Nodes that only pass on tell nothing apart.
    std::erase_if(set, [&](std::uint32_t node) { return node != 0 && nodes_[node].bytes.empty() && nodes_[node].calls.empty(); });
    std::sort(set.begin(), set.end());
    return set;
  }

  StateId state_of(NodeSet targets) {
    const auto [it, fresh] = states_.try_emplace(closure(std::move(targets)), static_cast<StateId>(dfa_.states.size()));
    if (fresh) {
      dfa_.states.emplace_back();
      pending_.emplace_back(&it->first, it->second);
    }
    return it->second;
  }

  void expand(const NodeSet* set, StateId state) {
    dfa_.states[state].final = !set->empty() && set->front() == 0;
    expand_bytes(*set, state);
    std::map<std::uint32_t, NodeSet> calls;
    for (const std::uint32_t node : *set)
      for (const NfaNode::Call& call : nodes_[node].calls) calls[call.unit].push_back(call.target);
    for (auto& [unit, targets] : calls) {
      const StateId next = state_of(unique(std::move(targets)));
      dfa_.states[state].calls.emplace_back(unit, next);
    }
  }

  // Between two neighbouring cuts all bytes lead to the same set.
  void expand_bytes(const NodeSet& set, StateId state) {
    std::array<bool, 257> cut{};
    bool any = false;
    for (const std::uint32_t node : set)
      for (const NfaNode::Bytes& edge : nodes_[node].bytes) cut[edge.first] = cut[edge.last + 1U] = any = true;
    if (!any) return;
    for (unsigned first = 0; first < 256;) {
      unsigned end = first + 1;
      while (end < 256 && !cut[end]) ++end;
      NodeSet targets;
      for (const std::uint32_t node : set)
        for (const NfaNode::Bytes& edge : nodes_[node].bytes)
          if (edge.first <= first && first <= edge.last) targets.push_back(edge.target);
      work_ += set.size();
      if (!targets.empty()) {
        const StateId target = state_of(unique(std::move(targets)));
        auto& edges = dfa_.states[state].bytes;
        if (!edges.empty() && edges.back().target == target && edges.back().last + 1U == first) {
          edges.back().last = static_cast<std::uint8_t>(end - 1);
        } else {
          edges.push_back({static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(end - 1), target});
        }
      }
      first = end;
    }
  }

  static NodeSet unique(NodeSet set) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    return set;
  }

  Dfa& dfa_;
  const std::vector<NfaNode>& nodes_;
  const BuildLimits& limits_;
  std::size_t& work_;
  std::vector<bool> seen_;
  std::map<NodeSet, StateId> states_;
  std::vector<std::pair<const NodeSet*, StateId>> pending_;
};

}  // namespace

Dfa determinise(const Grammar& grammar, ExprId root, const BuildLimits& limits, Inlining inlining) {
  Dfa dfa;
  const Measure measure(grammar);
  std::size_t work = 0;
  dfa.units.of_expr(root);
  for (std::size_t unit = 0; unit < dfa.units.size() && !dfa.overflowed; ++unit) {
    if (dfa.units[unit].counted) {
      dfa.unit_start.push_back(static_cast<StateId>(dfa.states.size()));
      dfa.states.emplace_back();
      dfa.states.back().counted = static_cast<std::uint32_t>(unit);
      continue;
    }
    NfaBuilder builder(grammar, measure, dfa.units, limits, inlining);
    const std::uint32_t start = builder.build(dfa.units[unit].expr);
    if (builder.overflowed()) {
      dfa.overflowed = true;
      break;
    }
    dfa.unit_start.push_back(Determiniser(dfa, builder.nodes(), limits, work).run(start));
  }
  return dfa;
}

}  // namespace braid::grammar
