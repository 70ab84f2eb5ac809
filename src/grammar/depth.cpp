#include "grammar/depth.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace braid::grammar {
namespace {

using Depths = std::vector<std::uint32_t>;

std::uint32_t least_depth(const Automaton& automaton, const State& state, const Depths& depths, std::uint32_t limit) {
  if (state.final) return 0;
  if (state.loop != kNoState) {
    const Loop& loop = automaton.loops[state.loop];
    return loop.min == 0 ? 0 : std::min(limit, depths[loop.body] + 1);
  }
  std::uint32_t least = limit;
  for (const ByteEdge& edge : automaton.bytes(state)) least = std::min(least, depths[edge.target]);
  for (const CallEdge& edge : automaton.calls(state))
    least = std::min(least, edge.tail ? depths[edge.callee] : std::max(depths[edge.callee] + 1, depths[edge.next]));
  return least;
}

// By state: those whose depth follows from its own.
std::vector<std::vector<StateId>> dependents(const Automaton& automaton) {
  std::vector<std::vector<StateId>> out(automaton.states.size());
  for (StateId id = 0; id < automaton.states.size(); ++id) {
    const State& state = automaton.states[id];
    for (const ByteEdge& edge : automaton.bytes(state)) out[edge.target].push_back(id);
    for (const CallEdge& edge : automaton.calls(state)) {
      out[edge.callee].push_back(id);
      out[edge.next].push_back(id);
    }
    if (state.loop != kNoState) out[automaton.loops[state.loop].body].push_back(id);
  }
  return out;
}

}  // namespace

std::vector<std::uint32_t> least_depths(const Automaton& automaton, std::uint32_t limit) {
  const auto users = dependents(automaton);
  Depths depths(automaton.states.size(), limit);
  std::deque<StateId> pending(automaton.states.size());
  std::iota(pending.rbegin(), pending.rend(), StateId{0});  // what a state leads to mostly has a higher number
  for (; !pending.empty(); pending.pop_front()) {
    const StateId id = pending.front();
    const std::uint32_t depth = least_depth(automaton, automaton.states[id], depths, limit);
    if (depth >= depths[id]) continue;
    depths[id] = depth;
    pending.insert(pending.end(), users[id].begin(), users[id].end());
  }
  return depths;
}

}  // namespace braid::grammar
