// Go templates, as far as Ollama's library uses them: actions, if, with, range, break and continue, variables, pipelines, and templates that
// are defined in the same text.
#pragma once

#include "braid/result.h"
#include "text/go_template/ast.h"

#include <string_view>

namespace braid::text::go {

// kInvalidArgument with the line and what is wrong there, or not known.
Result<Source> parse(std::string_view source);

}  // namespace braid::text::go
