// The answer of POST /v1/responses.
#pragma once

#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"

#include <memory>
#include <string>

namespace braid::net::responses {

// `call` is of parse_response(). The model outlives the format.
std::unique_ptr<AnswerFormat> response_format(const std::string& id, const ServedModel& model, const GenerationCall& call);

}  // namespace braid::net::responses
