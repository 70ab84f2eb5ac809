// The constraint under which an answer can only be tool calls.
#pragma once

#include "braid/constraint.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/generation/tool_rules.h"

namespace braid::net {

// In the model's own syntax, so that the parser of answers finds them. A reasoning model may think first. Without `schemas` the
// arguments may be any JSON object.
ConstraintSpec forced_calls(const ToolRules& rules, const AnswerSyntax& syntax, bool schemas);

// `answer` after the reasoning that the prompt has begun, if it has.
ConstraintSpec after_reasoning(const AnswerSyntax& syntax, ConstraintSpec answer);

}  // namespace braid::net
