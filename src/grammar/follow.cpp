#include "grammar/follow.h"

#include "grammar/token_walk.h"

#include <map>
#include <utility>

namespace braid::grammar {

std::vector<std::bitset<256>> follow_bytes(const Automaton& automaton) {
  std::vector<std::bitset<256>> follow(automaton.rules);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inherits;  // (callee, caller): what follows the one may follow the other
  Threads threads(automaton, Threads::Scope::kWithin);
  const auto returns_to = [&](StateId callee, StateId next) {
    const std::uint32_t rule = automaton.states[callee].rule;
    threads.clear();
    threads.push_state(next, 0, kBottom);
    follow[rule] |= first_bytes(automaton, threads);
    if (threads.returned()) inherits.emplace_back(rule, automaton.states[next].rule);
  };
  std::map<StateId, std::uint32_t> first_loop;  // of a body, as its rule
  for (StateId id = 0; id < automaton.states.size(); ++id) {
    const State& state = automaton.states[id];
    for (const CallEdge& edge : automaton.calls(state)) returns_to(edge.callee, edge.next);
    if (state.loop == kNoState) continue;
    const StateId body = automaton.loops[state.loop].body;
    returns_to(body, id);
    const auto [twin, fresh] = first_loop.try_emplace(body, state.rule);
    if (fresh) continue;
    inherits.emplace_back(twin->second, state.rule);
    inherits.emplace_back(state.rule, twin->second);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [callee, caller] : inherits) {
      const std::bitset<256> with = follow[callee] | follow[caller];
      changed = changed || with != follow[callee];
      follow[callee] = with;
    }
  }
  return follow;
}

}  // namespace braid::grammar
