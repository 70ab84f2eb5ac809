// Tools of a Responses request as functions for the model, and their calls as the client knows them.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"

#include <map>
#include <string>
#include <string_view>

namespace braid::net::responses {

// What a client calls a tool of whose function the model knows.
struct ClientTool {
  std::string space;  // of the namespace that it belongs to; empty: none
  std::string name;
  bool is_custom = false;  // takes text instead of JSON
};

using ClientTools = std::map<std::string, ClientTool, std::less<>>;  // by their functions' names

// The name of the function that stands for a tool of a namespace, or of none.
std::string function_name(std::string_view space, std::string_view name);

// Declares the functions of `tools`, those in namespaces and those that stand for custom tools; what only a provider's server could run
// is left out, and named in fields.wish.tools_left_out.
Result<void> read_tools(wish::BodyFields& fields, ClientTools& known, Value& tools, const std::string& path);

// "tool_choice": a mode, a tool, or several that are allowed.
Result<void> read_tool_choice(wish::BodyFields& fields, const Value& value, const std::string& path);

// Once both are read: names in the choice that stand for a tool of a namespace become its function's.
void resolve_choice(wish::ToolChoice& choice, const ClientTools& known);

// `tools` with all the members that the response object requires of them.
Value echoed_tools(const Value& tools);

}  // namespace braid::net::responses
