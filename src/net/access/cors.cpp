#include "net/access/cors.h"

#include "net/access/loopback.h"

#include <algorithm>

namespace braid::net::access {
namespace {

constexpr std::string_view kExposed =
    "X-Request-Id, Request-Id, Retry-After, X-Queue-Position, X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, "
    "X-RateLimit-Reset-Requests, X-RateLimit-Limit-Tokens, X-RateLimit-Remaining-Tokens, X-RateLimit-Reset-Tokens, "
    "X-Braid-Tools-Ignored, X-Braid-Schema-Ignored";

constexpr std::string_view kLocalhost = "localhost";

}  // namespace

bool Cors::allows_all() const { return std::find(origins_.begin(), origins_.end(), "*") != origins_.end(); }

bool Cors::allows(std::string_view origin) const {
  return std::any_of(origins_.begin(), origins_.end(), [origin](const std::string& allowed) {
    return allowed == kLocalhost ? is_loopback_origin(origin) : allowed == origin;
  });
}

void Cors::append_headers(http::Headers& headers, const http::Request& request) const {
  if (origins_.empty()) return;
  const bool all = allows_all();
  if (!all) headers.emplace_back("Vary", "Origin");
  if (request.origin.empty() || (!all && !allows(request.origin))) return;
  headers.emplace_back("Access-Control-Allow-Origin", all ? "*" : request.origin);
  headers.emplace_back("Access-Control-Expose-Headers", kExposed);
}

void Cors::append_preflight(http::Response& response, const http::Request& request) const {
  if (request.method != http::Method::kOptions || !request.is_preflight || request.origin.empty()) return;
  const auto allow =
      std::find_if(response.headers.begin(), response.headers.end(), [](const auto& header) { return header.first == "Allow"; });
  if (allow == response.headers.end() || (!allows_all() && !allows(request.origin))) return;
  const std::string methods = allow->second;
  response.headers.emplace_back("Access-Control-Allow-Methods", methods);
  if (!request.asked_headers.empty()) response.headers.emplace_back("Access-Control-Allow-Headers", request.asked_headers);
  if (request.asks_private_network) response.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
}

}  // namespace braid::net::access
