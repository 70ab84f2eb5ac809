// Subset construction over the units of a grammar.
#pragma once

#include "grammar/build.h"
#include "grammar/nfa.h"

#include <cstdint>
#include <vector>

namespace braid::grammar {

struct DfaState {
  std::vector<ByteEdge> bytes;                           // targets are states of the Dfa
  std::vector<std::pair<std::uint32_t, StateId>> calls;  // (unit, where it returns to)
  std::uint32_t counted = kNoState;                      // the counted unit whose only state this is
  bool final = false;
};

struct Dfa {
  std::vector<DfaState> states;     // of all units
  std::vector<StateId> unit_start;  // by unit
  Units units;
  bool overflowed = false;
};

// All units that `root` leads to; unit 0 is the root.
Dfa determinise(const Grammar& grammar, ExprId root, const BuildLimits& limits, Inlining inlining);

}  // namespace braid::grammar
