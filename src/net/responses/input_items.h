// The conversation of a Responses request as chat messages.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>

namespace braid::net::responses {

// `input` is a string or a list of items (messages, function calls and their outputs, reasoning). Appends chat messages; calls and
// reasoning join the assistant's message they belong to. Errors name the item, such as input[2].content[0].
Result<void> append_input(ValueList& messages, const Value& input, const std::string& path);

}  // namespace braid::net::responses
