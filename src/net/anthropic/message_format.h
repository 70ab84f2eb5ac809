// The answer of POST /v1/messages, and its errors.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/answer_format.h"
#include "net/generation/call.h"
#include "net/http/response.h"

#include <memory>
#include <string>
#include <string_view>

namespace braid::net::anthropic {

// Of a call whose details are MessageDetails.
std::unique_ptr<AnswerFormat> message_format(const std::string& id, const ServedModel& model, const GenerationCall& call);

// {"type":"error","error":{"type":…,"message":…},"request_id":null} with the status of the error.
http::Response error_response(const Error& error);

// Puts the id into an answer that error_response() made; others stay.
void sign_error(http::Response& response, std::string_view request_id);

}  // namespace braid::net::anthropic
