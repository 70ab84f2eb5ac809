#include "net/endpoints/router.h"

#include "net/anthropic/dialect.h"
#include "net/http/query.h"
#include "net/ollama/dialects.h"

#include <fmt/format.h>

namespace braid::net {
namespace {

using http::Method;

// RFC 9112 3.2.2: a server takes http://host/path as /path.
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos || target.starts_with('/')) return target;
  const std::size_t path = target.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos || target[path] == '?' ? "/" : target.substr(path);
}

// Some clients join a base URL and a path with a slash too many, or end one with it: /v1//models/ is /v1/models.
std::string single_slashes(std::string_view path) {
  std::string single;
  for (const char c : path)
    if (c != '/' || !single.ends_with('/')) single += c;
  if (single.size() > 1 && single.ends_with('/')) single.pop_back();
  return single;
}

bool takes(const Endpoint& row, Method method) { return method == row.method || (method == Method::kHead && row.method == Method::kGet); }

// The row for this path that takes the method, or else one that takes another; null when there is none.
const Endpoint* find_row(std::string_view path, Method method) {
  const Endpoint* found = nullptr;
  for (const Endpoint& row : endpoints()) {
    const bool matches = row.argument ? path.size() > row.path.size() && path.starts_with(row.path) : path == row.path;
    if (matches && takes(row, method)) return &row;
    if (matches && found == nullptr) found = &row;
  }
  return found;
}

// What the path of `row` takes, for the Allow header.
std::string methods_of(const Endpoint& row) {
  std::string methods;
  for (const Endpoint& other : endpoints()) {
    if (other.path != row.path) continue;
    if (other.method == Method::kPost) methods += "POST, ";
    if (other.method == Method::kGet) methods += "GET, HEAD, ";
    if (other.method == Method::kHead) methods += "HEAD, ";
    if (other.method == Method::kDelete) methods += "DELETE, ";
  }
  return methods + "OPTIONS";
}

const Voice& voice_at(std::string_view path, bool speaks_anthropic) {
  if (path.starts_with("/v1/")) path.remove_prefix(3);
  if (path.starts_with("/api/")) return ollama::kVoice;
  return speaks_anthropic || path == "/messages" || path.starts_with("/messages/") ? anthropic::kVoice : kOpenAiVoice;
}

http::Response not_found(std::string_view target, const Voice& voice) {
  return voice.refuse({ErrorCode::kNotFound, fmt::format("there is no route {}", target), ""});
}

http::Response with_allow(http::Response response, const Endpoint& row) {
  response.headers.emplace_back("Allow", methods_of(row));
  return response;
}

http::Response no_content() {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  return response;
}

}  // namespace

Resolution resolve(Method method, std::string_view target, bool speaks_anthropic) {
  if (method == Method::kOptions && target == "*") return Answered{no_content()};
  std::string_view path = origin_form(target);
  const std::size_t mark = path.find('?');
  const std::string_view query = mark == std::string_view::npos ? std::string_view() : path.substr(mark + 1);
  const std::string single = single_slashes(path.substr(0, mark));
  path = single;
  const Voice& voice = voice_at(path, speaks_anthropic);
  const Endpoint* row = find_row(path, method);
  if (row == nullptr && (path == "/v1" || path.starts_with("/v1/"))) {
    path.remove_prefix(3);
    row = find_row(path.empty() ? "/" : path, method);
  }
  if (row == nullptr) return Answered{not_found(target, voice), &voice};
  if (method == Method::kOptions) return Answered{with_allow(no_content(), *row), &voice};
  if (!takes(*row, method)) {
    const Error error{ErrorCode::kMethodNotAllowed, fmt::format("{} does not take this method", target), ""};
    return Answered{with_allow(voice.refuse(error), *row), &voice};
  }
  return Route{row, row->argument ? http::percent_decode(path.substr(row->path.size())) : std::string(), query};
}

}  // namespace braid::net
