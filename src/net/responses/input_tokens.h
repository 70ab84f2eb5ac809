// POST /v1/responses/input_tokens.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/text_answer.h"
#include "net/responses/store.h"

namespace braid::net::responses {

// {"object":"response.input_tokens","input_tokens":N} for the body of a response: the tokens of its prompt, with all that it names and all
// that the template adds. Any thread.
Result<TextAnswer> input_tokens(Value& body, const ServedModel& model, const Shelf& shelf);

}  // namespace braid::net::responses
