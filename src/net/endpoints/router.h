// Which endpoint a request is for.
#pragma once

#include "net/endpoints/endpoint.h"
#include "net/generation/dialect.h"
#include "net/http/request.h"
#include "net/http/response.h"

#include <string>
#include <string_view>
#include <variant>

namespace braid::net {

struct Route {
  const Endpoint* endpoint = nullptr;  // of endpoints()
  std::string argument;                // the decoded rest of the path, where the path takes one
  std::string_view query;              // behind the "?", as sent: a view of the target
};

// What is answered without a route: 404, 405 with Allow, or the 204 of OPTIONS.
struct Answered {
  http::Response response;
  const Voice* voice = &kOpenAiVoice;  // of the dialect of the path, or the client's
};

using Resolution = std::variant<Route, Answered>;

// With and without /v1 alike, except where an endpoint's path has it. HEAD is allowed where GET is. What there is not is said in the dialect
// of the path, or the client's.
Resolution resolve(http::Method method, std::string_view target, bool speaks_anthropic = false);

}  // namespace braid::net
