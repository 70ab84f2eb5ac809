// One HTTP response, and the head of any response.
#pragma once

#include "braid/result.h"
#include "net/http/request.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Response {
  int status = 200;
  std::string content_type = "application/json";  // empty: no body at all, as in a 204
  std::string body;
  Headers headers;                        // besides those that append_head writes
  std::optional<ErrorCode> refusal = {};  // what it tells of, when that is an error; for counting
};

// How the body's end is shown to the client.
enum class Framing { kLength, kChunked, kClose };

// Appends status line and headers, the empty line included. `response.body` gives Content-Length under kLength; it is not written.
void append_head(std::string& out, const Response& response, Framing framing, const Request& request, bool keep_alive);

std::string_view reason_phrase(int status);

}  // namespace braid::net::http
