// Go templates, as far as Ollama's library uses them: actions, if, with, range, break and continue, variables, pipelines.
#pragma once

#include "braid/result.h"
#include "text/go_template/ast.h"

#include <string_view>

namespace braid::text::go {

// kInvalidArgument with the line and what is not known, such as templates within templates.
Result<Nodes> parse(std::string_view source);

}  // namespace braid::text::go
