// Whether anything satisfies parts of a grammar.
#pragma once

#include "grammar/grammar.h"

#include <span>

namespace braid::grammar {

// Whether each of the expressions matches some text.
bool all_productive(const Grammar& grammar, std::span<const ExprId> expressions);

}  // namespace braid::grammar
