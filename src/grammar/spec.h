// ConstraintSpec → grammar expression.
#pragma once

#include "braid/constraint.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

#include <string>
#include <vector>

namespace braid::grammar {

// kInvalidArgument with the path of what cannot be honoured; `left_out` gets the paths of what schemas that are not strict lose.
Result<ExprId> translate(const ConstraintSpec& spec, const Vocabulary& vocabulary, Grammar& grammar, std::vector<std::string>& left_out);

// Equal for specs that allow the same texts by the same words, whatever their paths, but for those of schemas that are not strict.
std::string cache_key(const ConstraintSpec& spec);

}  // namespace braid::grammar
