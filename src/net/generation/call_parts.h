// Parts of the constraints of answers with calls.
#pragma once

#include "braid/constraint.h"
#include "net/generation/parser/answer_syntax.h"
#include "net/wish/tool_rules.h"

#include <string>
#include <vector>

namespace braid::net {

inline const std::string kToolsPath = "tools";
inline constexpr std::int32_t kMaxFurtherCalls = 31;  // a small model may not find an end of its own

ConstraintSpec literal(std::string text, const std::string& path);
ConstraintSpec sequence(std::vector<ConstraintSpec> parts, const std::string& path);

// The arguments of a call: an object, of the function's schema or with the text that its format says.
ConstraintSpec arguments_of(const ToolFunction& function);

// Calls and what stands between them. `opened`: the marker that begins the first one, or the list of them, is there already.
void append_calls(std::vector<ConstraintSpec>& parts, const ToolRules& rules, const CallSyntax& syntax, bool opened);

}  // namespace braid::net
