#include "net/admin/pause.h"

#include "braid/pausable.h"
#include "net/admin/sequences.h"
#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/fields.h"
#include "net/json/parse.h"

#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <utility>
#include <vector>

namespace braid::net::admin {
namespace {

// What stands still, or why nothing does. The body may be empty.
Result<Pausable*> compute_of(const Service& service, std::string& body) {
  if (!body.empty())
    if (const Result<Value> document = json::parse_object(body); !document) return document.error();
  if (service.status.state == ServiceState::kDraining) return Error{ErrorCode::kDraining, "the server is shutting down", {}};
  if (service.status.compute == nullptr) return Error{ErrorCode::kModelNotLoaded, "nothing is loaded yet", {}};
  return service.status.compute;
}

http::Response told(bool is_paused, std::size_t aborted) {
  http::Response response;
  response.body = fmt::format(R"({{"object":"pause","is_paused":{},"aborted":{}}})", is_paused, aborted);
  return response;
}

std::vector<std::string> running_ids(const Service& service) {
  std::vector<std::string> ids;
  for (const auto& [id, answer] : service.answers) ids.push_back(id);
  for (const auto& [id, prediction] : service.predictions)
    if (ids.empty() || ids.back() != id) ids.push_back(id);  // equal ones are neighbours
  return ids;
}

std::size_t abort_all(const Service& service, const std::vector<std::string>& ids) {
  std::size_t aborted = 0;
  for (const std::string& id : ids) {
    const auto found = service.answers.find(id);
    if (found != service.answers.end() && cancel_answer(service, id, found->second.client->name())) ++aborted;
    aborted += cancel_predictions(service, id, std::nullopt);
  }
  return aborted;
}

// The ids of a body, which has either a list of them or says that all are meant.
Result<std::vector<std::string>> read_ids(const Service& service, std::string& body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  bool all = false;
  std::vector<std::string> ids;
  for (const auto& [name, value] : *document->get_if<ValueDict>()) {
    if (name == "all") {
      const Result<bool> flag = json::read_bool(value, name);
      if (!flag) return flag.error();
      all = *flag;
    } else if (name == "request_ids") {
      const auto* list = value.get_if<ValueList>();
      if (list == nullptr) return json::wrong_type(name, "a list of ids", value);
      for (std::size_t i = 0; i < list->size(); ++i) {
        Result<std::string> id = json::read_string((*list)[i], json::at_index(name, i));
        if (!id) return id.error();
        ids.push_back(std::move(*id));
      }
    } else {
      return invalid_argument(fmt::format("'{}' is not known here", name), name);
    }
  }
  if (all) return running_ids(service);
  if (ids.empty()) return invalid_argument("'request_ids' is missing; {\"all\": true} ends all answers that run", "request_ids");
  return ids;
}

}  // namespace

http::Response pause(Service& service, std::string_view query, std::string& body) {
  const Result<Pausable*> compute = compute_of(service, body);
  if (!compute) return http::error_response(compute.error());
  const std::string mode = http::query_value(query, "mode").value_or("keep");
  if (mode != "keep" && mode != "abort") return http::error_response(invalid_argument("'mode' must be 'keep' or 'abort'", "mode"));
  (*compute)->pause();
  return told(true, mode == "abort" ? abort_all(service, running_ids(service)) : 0);
}

http::Response resume(Service& service, std::string& body) {
  const Result<Pausable*> compute = compute_of(service, body);
  if (!compute) return http::error_response(compute.error());
  (*compute)->resume();
  return told(false, 0);
}

http::Response is_paused(const ServiceStatus& status) {
  http::Response response;
  response.body = fmt::format(R"({{"is_paused":{}}})", status.compute != nullptr && status.compute->is_paused());
  return response;
}

http::Response abort_requests(Service& service, std::string& body) {
  const Result<std::vector<std::string>> ids = read_ids(service, body);
  if (!ids) return http::error_response(ids.error());
  http::Response response;
  response.body = fmt::format(R"({{"object":"abort_requests","aborted":{}}})", abort_all(service, *ids));
  return response;
}

}  // namespace braid::net::admin
