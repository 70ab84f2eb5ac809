// The conversation of a Responses request as chat messages.
#pragma once

#include "braid/result.h"
#include "braid/value.h"

#include <string>
#include <vector>

namespace braid::net::responses {

// `input` is a string or a list of items (messages, calls and their outputs, reasoning, summaries). Appends chat messages; calls and
// reasoning join the assistant's message they belong to. Items that hold nothing a model of text can read, such as calls of a provider's
// tools, are left out, and their types appended to `left_out`. Errors name the item, such as input[2].content[0].
Result<void> append_input(ValueList& messages, const Value& input, const std::string& path, std::vector<std::string>& left_out);

}  // namespace braid::net::responses
