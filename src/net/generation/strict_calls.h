// The constraint of an answer that may call strict functions.
#pragma once

#include "braid/constraint.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/wish/tool_rules.h"

#include <optional>

namespace braid::net {

// Free text in which a call, as soon as it is one to the parser of answers, is of a declared function, and its arguments satisfy its
// schema. nullopt where no function is strict.
std::optional<ConstraintSpec> strict_calls(const ToolRules& rules, const AnswerSyntax& syntax);

}  // namespace braid::net
