// The answer of POST /v1/responses.
#pragma once

#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/responses/running.h"

#include <memory>
#include <string>

namespace braid::net::responses {

// `call` is of read_response(). The model and `running` outlive the format, which is there while it lives.
std::unique_ptr<AnswerFormat> response_format(const std::string& id, const ServedModel& model, const GenerationCall& call,
                                              RunningResponses& running);

}  // namespace braid::net::responses
