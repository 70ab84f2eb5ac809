// One HTTP request, parsed and complete.
#pragma once

#include <string>

namespace braid::net::http {

enum class Method { kGet, kHead, kPost, kDelete, kOptions, kOther };

struct Request {
  Method method = Method::kGet;
  std::string target = "/";  // as sent: percent-encoded, with its query
  int version = 11;          // 10 or 11
  bool keep_alive = true;    // whether the client allows another request on this connection
  std::string request_id;    // X-Request-Id, or empty
  std::string body;
};

}  // namespace braid::net::http
