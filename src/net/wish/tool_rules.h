// Which functions an answer may call, and whether it must.
#pragma once

#include "braid/value.h"

#include <string>
#include <vector>

namespace braid::net {

struct ToolFunction {
  std::string name;
  Value parameters;     // a JSON schema, or null: any object
  bool strict = false;  // the schema must be honoured exactly when a call is forced
  std::string path;     // of its schema in the request
};

struct ToolRules {
  std::vector<ToolFunction> functions;  // those that may be called; not empty
  bool required = false;                // the answer is calls and nothing else
  bool parallel = true;                 // several calls in one answer
};

}  // namespace braid::net
