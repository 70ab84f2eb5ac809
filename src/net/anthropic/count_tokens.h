// POST /v1/messages/count_tokens.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"

#include <string>

namespace braid::net::anthropic {

// A body as for /v1/messages → {"input_tokens":…}: what its prompt would take. May run on any thread.
Result<std::string> count_tokens(Value& body, const ServedModel& model);

}  // namespace braid::net::anthropic
