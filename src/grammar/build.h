// Grammar → automaton.
#pragma once

#include "braid/result.h"
#include "grammar/automaton.h"
#include "grammar/grammar.h"

namespace braid::grammar {

// The sizes at which building gives up; the work is proportional to them.
struct BuildLimits {
  std::size_t states = 50'000;   // of the automaton, and of the nondeterministic one of a single rule
  std::size_t work = 6'000'000;  // elements of state sets looked at
};

// Rewrites rules that begin with themselves, A = A x | y, into y x*; other left recursion is refused by build().
void remove_direct_left_recursion(Grammar& grammar);

// kInvalidArgument (without param) when the grammar is too large, matches no text at all, has a left-recursive rule, or when `Threads`
// cannot follow it: more rules begin at one place, or nest in every text.
Result<Automaton> build(const Grammar& grammar, ExprId root, const BuildLimits& limits = {});

}  // namespace braid::grammar
