// The one table from an error to what a client sees of it, in OpenAI's envelope.
#pragma once

#include "braid/result.h"
#include "net/http/response.h"

#include <string>
#include <string_view>

namespace braid::net::http {

int status_of(ErrorCode code);

// {"message":…,"type":…,"param":…,"code":…} in an "error" member.
void append_envelope(std::string& out, const Error& error);

Response error_response(const Error& error);

// For what fails before there is a route: malformed HTTP, limits, timeouts.
Response protocol_error(int status, std::string_view message);

}  // namespace braid::net::http
