// The answer of POST /v1/messages, and its errors.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/http/response.h"

#include <memory>
#include <string>

namespace braid::net::anthropic {

// Of a call whose details are MessageDetails.
std::unique_ptr<AnswerFormat> message_format(const std::string& id, const ServedModel& model, const GenerationCall& call);

// {"type":"error","error":{"type":…,"message":…}} with the status of the error.
http::Response error_response(const Error& error);

}  // namespace braid::net::anthropic
