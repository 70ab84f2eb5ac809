// ConstraintSpec → grammar expression.
#pragma once

#include "braid/constraint.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

#include <string>

namespace braid::grammar {

// kInvalidArgument with the path of what cannot be honoured.
Result<ExprId> translate(const ConstraintSpec& spec, const Vocabulary& vocabulary, Grammar& grammar);

// Equal for specs that allow the same texts by the same words, whatever their paths.
std::string cache_key(const ConstraintSpec& spec);

}  // namespace braid::grammar
