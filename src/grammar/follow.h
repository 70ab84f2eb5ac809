// Which bytes may come after a rule has returned, over all places that call it.
#pragma once

#include "grammar/automaton.h"

#include <bitset>
#include <vector>

namespace braid::grammar {

// By rule. Loops of one body get one set, so that they can share what is derived from it.
std::vector<std::bitset<256>> follow_bytes(const Automaton& automaton);

}  // namespace braid::grammar
