// The constraints of an answer that must be tool calls, or an answer of a certain form.
#pragma once

#include "braid/constraint.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/wish/tool_rules.h"

namespace braid::net {

// In the model's own syntax, so that the parser of answers finds them. A reasoning model may think first.
ConstraintSpec forced_calls(const ToolRules& rules, const AnswerSyntax& syntax);

// Calls as above, or `text`, the constraint of an answer without calls.
ConstraintSpec calls_or(const ToolRules& rules, const AnswerSyntax& syntax, ConstraintSpec text);

// `answer` after the reasoning that the prompt has begun, if it has.
ConstraintSpec after_reasoning(const AnswerSyntax& syntax, ConstraintSpec answer);

}  // namespace braid::net
