// A whole Value as JSON: for what an answer repeats of its request, never per token.
#pragma once

#include "braid/value.h"

#include <string>

namespace braid::net::json {

// Compact; numbers in the shortest form that reads back as the same value.
void append_value(std::string& out, const Value& value);

}  // namespace braid::net::json
