// What a response has taken, in this API's words.
#pragma once

#include "braid/token_event.h"

#include <string>

namespace braid::net::responses {

// The value of a response object's member "usage".
void append_usage(std::string& out, const Usage& usage);

}  // namespace braid::net::responses
