// Calls that text may turn out to be: JSON objects at its beginning or in a fence, and Python's calls in a list.
#pragma once

#include "braid/constraint.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/wish/tool_rules.h"

#include <string>

namespace braid::net {

// Any text, but for what the parser of answers would read as a call: that is one of a declared function whose arguments satisfy its
// schema. Of texts that begin with a bracket some that are no calls are left out too: those that name a declared function.
// Nor does any begin with one of `not_first`, which stands for something else there.
ConstraintSpec calls_in_text(const ToolRules& rules, const CallSyntax& syntax, const std::string& not_first);

}  // namespace braid::net
