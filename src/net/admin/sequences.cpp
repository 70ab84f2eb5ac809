#include "net/admin/sequences.h"

#include "net/generation/prompts.h"
#include "net/http/error_response.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"

#include <fmt/format.h>

namespace braid::net::admin {
namespace {

Result<std::string> read_id(std::string& body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  const Value* id = document->find("id");
  if (id == nullptr) return invalid_argument("'id' is missing", "id");
  return json::read_string(*id, "id");
}

}  // namespace

const RunningAnswer* find_answer(const Service& service, const std::string& id, std::string_view client) {
  const auto found = service.answers.find(id);
  return found != service.answers.end() && found->second.client->name() == client ? &found->second : nullptr;
}

bool cancel_answer(const Service& service, const std::string& id, std::string_view client) {
  const RunningAnswer* answer = find_answer(service, id, client);
  if (answer == nullptr) return false;
  bool any = false;
  Engine& engine = *answer->engine;
  const std::size_t choices = answer->sequences;  // cancelling may end the answer
  for (std::size_t i = 0; i < choices; ++i) any = engine.cancel(choice_id(id, i, choices)) || any;
  return any;
}

std::size_t cancel_predictions(const Service& service, const std::string& id, std::optional<std::string_view> client) {
  std::size_t count = 0;
  const auto [begin, end] = service.predictions.equal_range(id);
  for (auto each = begin; each != end; ++each) {
    if (client && each->second.client->name() != *client) continue;
    each->second.pending->cancel();
    ++count;
  }
  return count;
}

http::Response abort(Service& service, std::string& body, std::string_view client) {
  const Result<std::string> id = read_id(body);
  if (!id) return http::error_response(id.error());
  if (!cancel_answer(service, *id, client) && cancel_predictions(service, *id, client) == 0)
    return http::error_response({ErrorCode::kNotFound, fmt::format("no answer with the id '{}' is running", *id), "id"});
  http::Response response;
  response.body = R"({"id":)";
  json::append_string(response.body, *id);
  response.body += R"(,"object":"abort","aborted":true})";
  return response;
}

}  // namespace braid::net::admin
