// Tools that take a text, as functions for the model.
#pragma once

#include "braid/result.h"
#include "braid/value.h"
#include "net/wish/body_fields.h"

#include <optional>
#include <string>

namespace braid::net::wish {

struct CustomTool {
  Value function;                     // {"type":"function","name":…,"description":…,"parameters":…,"strict":true}
  std::optional<InputFormat> format;  // that its description tells too
  std::string unknown_format = {};    // its path, where it is left out; empty: it is not
};

// `tool` has "name" and "description"; `format` is its format: null, of the type "text", or of the type "grammar" with the members
// "syntax" and "definition", itself or in its member "grammar"; of another type or syntax it is left out.
Result<CustomTool> custom_tool(const Value& tool, const Value* format, const std::string& format_path);

// Says of the function added last that it stands for the custom tool.
void mark_custom(BodyFields& fields, CustomTool tool);

// The arguments of a call that stand for its text.
Value arguments_of_input(std::string input);

}  // namespace braid::net::wish
