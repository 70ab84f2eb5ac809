// Regular expressions that are looked for in text as it comes.
#pragma once

#include "braid/constraint.h"
#include "braid/result.h"

#include <memory>
#include <string_view>

namespace braid::grammar {

// As TextLanguages::regex() reads the pattern; $ is where the text ends so far. kInvalidArgument when it is not understood, needs too
// many states, or matches the empty text, which would be found before any.
Result<std::shared_ptr<const TextSearch>> make_text_search(std::string_view pattern);

}  // namespace braid::grammar
