#include <fmt/format.h>
#include <net/http/error_response.h>
#include <net/json/write.h>
#include <net/json/write_value.h>
#include <net/responses/kept.h>

namespace braid::net::responses {
namespace {

http::Response unknown(std::string_view id) {
  return http::error_response({ErrorCode::kNotFound, fmt::format("the response '{}' is unknown or no longer kept", id), "id"});
}

http::Response input_items(const StoredResponse& response) {
  http::Response answer;
  answer.body = R"({"object":"list","data":)";
  json::append_value(answer.body, response.input);
  answer.body += R"(,"first_id":null,"last_id":null,"has_more":false})";
  return answer;
}

}  // namespace

http::Response show(const Shelf& stored, std::string_view path) {
  constexpr std::string_view kInputItems = "/input_items";
  const bool input = path.ends_with(kInputItems);
  const std::string_view id = input ? path.substr(0, path.size() - kInputItems.size()) : path;
  const auto response = stored.find(id);
  if (response == nullptr) return unknown(id);
  if (input) return input_items(*response);
  http::Response answer;
  answer.body = response->body;
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
