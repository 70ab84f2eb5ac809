// Which web pages may read answers (the Fetch standard's CORS protocol).
#pragma once

#include "net/http/request.h"
#include "net/http/response.h"

#include <string>
#include <string_view>
#include <vector>

namespace braid::net::access {

// Keys travel in headers that a page sets itself, never in cookies: credentials in the sense of CORS are not allowed, so that "*"
// gives a page nothing that any other client has not.
class Cors {
 public:
  // Origins such as https://example.org:8443, "localhost" for those of this machine at any port, or "*" for all; none: no page of another origin may read anything.
  explicit Cors(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  // What an answer to `request` must have.
  void append_headers(http::Headers& headers, const http::Request& request) const;

  // And what `response`, if it is that to OPTIONS with its Allow, has besides when a page asks whether it may send a request.
  void append_preflight(http::Response& response, const http::Request& request) const;

 private:
  bool allows_all() const;
  bool allows(std::string_view origin) const;

  std::vector<std::string> origins_;
};

}  // namespace braid::net::access
