// The constraints of an answer that must, or may, be tool calls.
#pragma once

#include "braid/constraint.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/wish/tool_rules.h"

#include <optional>

namespace braid::net {

// In the model's own syntax, so that the parser of answers finds them. A reasoning model may think first. Without `schemas` the
// arguments may be any JSON object.
ConstraintSpec forced_calls(const ToolRules& rules, const AnswerSyntax& syntax, bool schemas);

// Calls as above, or `text`, the constraint of an answer without calls.
ConstraintSpec calls_or(const ToolRules& rules, const AnswerSyntax& syntax, ConstraintSpec text, bool schemas);

// Free text in which the model's own marker begins a call of a declared function, whose arguments satisfy its schema. nullopt where no
// function is strict, or the model's form has no marker of its own to tell a call by.
std::optional<ConstraintSpec> strict_calls(const ToolRules& rules, const AnswerSyntax& syntax, bool schemas);

// `answer` after the reasoning that the prompt has begun, if it has.
ConstraintSpec after_reasoning(const AnswerSyntax& syntax, ConstraintSpec answer);

}  // namespace braid::net
