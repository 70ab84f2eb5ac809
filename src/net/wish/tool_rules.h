// Which functions an answer may call, and whether it must.
#pragma once

#include "braid/value.h"

#include <optional>
#include <string>
#include <vector>

namespace braid::net {

// What the text for a custom tool must match.
struct InputFormat {
  std::string text;  // a regular expression, or a grammar in Lark's form
  bool is_regex = false;
  std::string path = {};  // in the request
};

// The one argument of a function that stands for a custom tool.
inline constexpr char kCustomInput[] = "input";

struct ToolFunction {
  std::string name;
  Value parameters;                        // a JSON schema, or null: any object
  bool strict = false;                     // the schema must be honoured exactly when a call is forced
  std::string path;                        // of its schema in the request
  bool is_custom = false;                  // it stands for a tool that takes a text: kCustomInput
  std::optional<InputFormat> format = {};  // which it must match
};

struct ToolRules {
  std::vector<ToolFunction> functions;  // those that may be called; not empty
  bool required = false;                // the answer is calls and nothing else
  bool parallel = true;                 // several calls in one answer
};

}  // namespace braid::net
