// POST /v1/messages/count_tokens.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/text_answer.h"

namespace braid::net::anthropic {

// A body as for /v1/messages → {"input_tokens":…}: what its prompt would take. May run on any thread.
Result<TextAnswer> count_tokens(Value& body, const ServedModel& model);

}  // namespace braid::net::anthropic
