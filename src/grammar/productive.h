// Whether anything satisfies parts of a grammar.
#pragma once

#include "grammar/grammar.h"

#include <vector>

namespace braid::grammar {

// Whether each expression, by its id, matches some text.
std::vector<bool> find_productive(const Grammar& grammar);

}  // namespace braid::grammar
