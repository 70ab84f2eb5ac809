// The tools of a chat, in the form of any dialect, and which of them may be called.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace braid::net::wish {

// Where a dialect's tool has the members of its function.
struct ToolForm {
  std::string_view holder;      // the member that holds them; empty: the tool itself
  std::string_view parameters;  // the name of the schema
  std::size_t most_name_bytes;
};

// A function, behind those that `fields` has: declared there, and written as templates expect it. `path` is where it stands.
Result<void> add_tool(BodyFields& fields, Value tool, const std::string& path, const ToolForm& form);

// The member `name` of a function: letters, digits, underscores, dashes or dots.
Result<std::string> read_function_name(const Value& function, const std::string& path, std::size_t most_bytes);

// "none", "auto" or "required".
Result<ToolChoice::Mode> read_tool_mode(const Value& value, const std::string& path);

// Once all fields are read: the tools of the wish and of its prompt.
Result<void> finish_tools(BodyFields& fields);

}  // namespace braid::net::wish
