// How deep the calls of an automaton must nest.
#pragma once

#include "grammar/automaton.h"

#include <cstdint>
#include <vector>

namespace braid::grammar {

// By state: the most calls that are open at once on the flattest way to the end of its rule. `limit` stands for all that is more.
std::vector<std::uint32_t> least_depths(const Automaton& automaton, std::uint32_t limit);

}  // namespace braid::grammar
