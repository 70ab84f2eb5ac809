#include "net/responses/kept.h"

#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/write.h"
#include "net/responses/listed_items.h"

#include <fmt/format.h>
#include <utility>

namespace braid::net::responses {
namespace {

http::Response unknown(std::string_view id) {
  return http::error_response({ErrorCode::kNotFound, fmt::format("the response '{}' is unknown or no longer kept", id), "id"});
}

// What OpenAI's API streams again is a response that was made in the background, and here there is none.
Result<void> check_stream(std::string_view query) {
  const std::string stream = http::query_value(query, "stream").value_or("false");
  if (stream == "false") return {};
  if (stream == "true")
    return invalid_argument("a response cannot be streamed again, since it was not made in the background: leave out 'stream'", "stream");
  return invalid_argument("'stream' must be 'true' or 'false'", "stream");
}

Result<std::string> whole(const StoredResponse& response, std::string_view query) {
  const Result<void> checked = check_stream(query);
  if (!checked) return checked.error();
  return response.body;
}

}  // namespace

http::Response show(const Shelf& stored, std::string_view path, std::string_view query) {
  constexpr std::string_view kInputItems = "/input_items";
  const bool input = path.ends_with(kInputItems);
  const std::string_view id = input ? path.substr(0, path.size() - kInputItems.size()) : path;
  const auto response = stored.find(id);
  if (response == nullptr) return unknown(id);
  Result<std::string> body = input ? list_items(response->input, query) : whole(*response, query);
  if (!body) return http::error_response(body.error());
  http::Response answer;
  answer.body = std::move(*body);
  return answer;
}

http::Response erase(const Shelf& stored, std::string_view path) {
  if (!stored.erase(path)) return unknown(path);
  http::Response answer;
  answer.body = R"({"id":)";
  json::append_string(answer.body, path);
  answer.body += R"(,"object":"response","deleted":true})";
  return answer;
}

}  // namespace braid::net::responses
