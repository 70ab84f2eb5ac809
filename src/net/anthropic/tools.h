// The tools of a message: which of them the model is told of.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"

#include <cstddef>
#include <set>
#include <string>

namespace braid::net::anthropic {

inline constexpr std::size_t kMostNameBytes = 128;  // of a tool, as Claude Code has them

// Declares the tools of `value`, an array. A tool with "defer_loading" waits until a tool_reference of the conversation or the choice names
// it, unless it was to be found by a search that only the provider's server could run. Such tools are left out, and named in
// fields.wish.tools_left_out. Once the choice has been read.
Result<void> read_tools(wish::BodyFields& fields, Value& value, const std::set<std::string>& referenced, const std::string& path);

// {"type":"auto"|"any"|"tool"|"none", …}
Result<void> read_tool_choice(wish::BodyFields& fields, const Value& value, const std::string& path);

}  // namespace braid::net::anthropic
