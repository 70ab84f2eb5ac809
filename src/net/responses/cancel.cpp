#include "net/responses/cancel.h"

#include "net/http/error_response.h"
#include "net/json/parse.h"

#include <fmt/format.h>
#include <memory>
#include <utility>

namespace braid::net::responses {
namespace {

http::Response told(std::string body) {
  http::Response answer;
  answer.body = std::move(body);
  return answer;
}

http::Response ended(const std::string& id) {
  return http::error_response(
      invalid_argument(fmt::format("the response '{}' has ended: only one that is being generated can be cancelled", id), "id"));
}

}  // namespace

http::Response cancel(const Shelf& stored, const RunningResponses& running, std::string_view path, std::string& body, const Stop& stop) {
  constexpr std::string_view kCancel = "/cancel";
  if (!path.ends_with(kCancel))
    return http::error_response({ErrorCode::kNotFound, fmt::format("there is no route /responses/{}", path), ""});
  if (!body.empty())
    if (const Result<Value> document = json::parse_object(body); !document) return http::error_response(document.error());
  const std::string id(path.substr(0, path.size() - kCancel.size()));
  if (const auto kept = stored.find(id)) return kept->cancelled ? told(kept->body) : ended(id);
  const RunningResponse* response = running.find(stored, id);
  if (response == nullptr)
    return http::error_response({ErrorCode::kNotFound, fmt::format("the response '{}' is unknown or no longer kept", id), "id"});
  const bool is_to_be_kept = response->is_to_be_kept();
  StoredResponse cancelled = response->as_cancelled();
  if (!stop(id)) return ended(id);  // which may have ended the response itself
  std::string whole = cancelled.body;
  if (is_to_be_kept) stored.keep(id, std::move(cancelled));
  return told(std::move(whole));
}

}  // namespace braid::net::responses
