// Subset construction over the units of a grammar.
#pragma once

#include "grammar/build.h"
#include "grammar/nfa.h"

#include <cstdint>
#include <vector>

namespace braid::grammar {

struct DraftState {
  std::vector<ByteEdge> bytes;                           // targets are draft states
  std::vector<std::pair<std::uint32_t, StateId>> calls;  // (unit, where it returns to)
  std::uint32_t counted = kNoState;                      // the counted unit whose only state this is
  bool final = false;
};

struct Draft {
  std::vector<DraftState> states;   // of all units
  std::vector<StateId> unit_start;  // by unit
  Units units;
  bool overflowed = false;
};

// All units that `root` leads to; unit 0 is the root.
Draft determinise(const Grammar& grammar, ExprId root, const BuildLimits& limits, Inlining inlining);

}  // namespace braid::grammar
