// Where the requests go.
#pragma once

#include "braid/result.h"

#include <string>
#include <string_view>

namespace braid::bench {

struct Target {
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
  std::string path;  // of the API, without a slash at the end: "/v1"
};

// "http://host:port", with a path or without; the path gets the "/v1" that it lacks.
Result<Target> parse_target(std::string_view base_url);

}  // namespace braid::bench
