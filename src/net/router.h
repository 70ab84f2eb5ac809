// Which endpoint a request is for.
#pragma once

#include "net/http/request.h"
#include "net/http/response.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace braid::net {

enum class Endpoint {
  kCompletions,
  kChatCompletions,
  kPerplexity,
  kAbort,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
  kModels,
  kModel,
  kProps,
  kSlots,
  kHealth,
  kLivez,
  kReadyz,
  kMetrics,
  kResponses,
  kResponse,
  kDeleteResponse,
  kMessages,
  kCountTokens,
  kOpenApi,
  kDocs,
  kCacheStats,
  kMetricsJson,
};
inline constexpr std::size_t kEndpointCount = 24;

struct RouteRow {
  Endpoint endpoint;
  std::string_view path;  // without /v1, unless only the path with it means this
  http::Method method;    // GET implies HEAD
  bool argument;          // one more path segment (or several: model ids may hold slashes) follows
};

// Every route, in the order of the endpoints.
std::span<const RouteRow, kEndpointCount> routes();

// The row's path: its label in metrics.
std::string_view path_of(Endpoint endpoint);

struct Route {
  Endpoint endpoint = Endpoint::kHealth;
  std::string argument;    // the decoded rest of the path, where the path takes one
  std::string_view query;  // behind the "?", as sent: a view of the target
};

// A route, or what is answered instead: 404, 405 with Allow, or the 204 of OPTIONS.
using Resolution = std::variant<Route, http::Response>;

// With and without /v1 alike, except where a row's path has it. HEAD is allowed where GET is.
Resolution resolve(http::Method method, std::string_view target);

}  // namespace braid::net
