// What `timings_per_token` adds to an answer, in every dialect.
#pragma once

#include "braid/token_event.h"

#include <string>

namespace braid::net {

// ,"timings":{…} with llama-server's names, and queue_ms. A rate without time is 0.
void append_timings(std::string& out, const Usage& usage);

}  // namespace braid::net
