#include "net/ollama/stored_models.h"

#include "net/generation/dialect.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/ollama/dialects.h"
#include "net/ollama/line_format.h"
#include "net/ollama/model_entry.h"
#include "net/ollama/models.h"
#include "net/ollama/recipe.h"
#include "net/ollama/shown_model.h"
#include "net/ollama/timestamp.h"
#include "net/service/registry_jobs.h"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <utility>
#include <vector>

namespace braid::net::ollama {
namespace {

namespace asio = boost::asio;

http::Response json_response(std::string body) {
  http::Response response;
  response.body = std::move(body);
  return response;
}

Result<std::string> name_in(const Value& document, const std::string& name) {
  const Value* value = document.find(name);
  if (value == nullptr || value->is_null()) return invalid_argument("'" + name + "' is missing", name);
  return json::read_string(*value, name);
}

http::Response nothing_or(const Result<void>& done) {
  if (!done) return error_response(done.error());
  http::Response response;
  response.content_type = "";
  return response;
}

// What is served under a name that nothing in the registry has.
bool is_stored(const ServedModel& served, const std::vector<StoredModel>& models) {
  return std::ranges::any_of(models,
                             [&](const StoredModel& model) { return model.name == served.id || model.name == served.id + ":latest"; });
}

struct ShowWish {
  std::string model = {};  // empty: the first one that is served
  bool verbose = false;
};

Result<ShowWish> read_show(std::string& body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  ShowWish wish;
  if (document->find("model") != nullptr || document->find("name") != nullptr) {
    Result<std::string> model = model_in(*document);
    if (!model) return model.error();
    wish.model = std::move(*model);
  }
  if (const Value* verbose = document->find("verbose"); verbose != nullptr && !verbose->is_null()) {
    const Result<bool> wanted = json::read_bool(*verbose, "verbose");
    if (!wanted) return wanted.error();
    wish.verbose = *wanted;
  }
  return wish;
}

}  // namespace

asio::awaitable<http::Response> tags(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string) {
  std::vector<StoredModel> models;
  if (registry_of(*service)) {
    std::function<Result<std::vector<StoredModel>>(ModelRegistry&)> list = [](ModelRegistry& registry) { return registry.list({}); };
    Result<std::vector<StoredModel>> listed = co_await ask_registry(*service, std::move(list));
    if (!listed) co_return error_response(listed.error());
    models = std::move(*listed);
  }
  std::string out = R"({"models":[)";
  const auto add = [&out](const auto& model, std::int64_t modified) {
    if (!out.ends_with('[')) out += ',';
    append_entry(out, model);
    out += R"(,"modified_at":")" + timestamp(modified) + "\"}";
  };
  for (const ServedModel* served : service->status.models.all())
    if (!is_stored(*served, models)) add(*served, served->created);
  for (const StoredModel& model : models) add(model, model.modified);
  co_return json_response(out + "]}");
}

asio::awaitable<http::Response> show(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  Result<ShowWish> wish = read_show(body);
  if (!wish) co_return error_response(wish.error());
  Result<std::string> shown = Error{ErrorCode::kNotFound, "", ""};
  if (registry_of(*service) && !wish->model.empty()) {
    std::function<Result<std::string>(ModelRegistry&)> describe = [wish = *wish](ModelRegistry& registry) -> Result<std::string> {
      const Result<ModelDetails> details = registry.describe(wish.model, wish.verbose);
      if (!details) return details.error();
      return shown_model(*details, wish.verbose);
    };
    shown = co_await ask_registry(*service, std::move(describe));
  }
  if (!shown && shown.error().code == ErrorCode::kNotFound) {
    const Result<const ServedModel*> served = served_model(service->status, wish->model);
    Value document;
    if (served) {
      Result<TextAnswer> answer = ollama::show(document, **served);
      if (!answer) co_return error_response(answer.error());
      shown = std::move(answer->document);
    } else if (shown.error().message.empty() || served.error().code != ErrorCode::kNotFound) {
      shown = served.error();
    }
  }
  if (!shown) co_return error_response(shown.error());
  co_return json_response(std::move(*shown));
}

asio::awaitable<http::Response> copy(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) co_return error_response(document.error());
  const Result<std::string> source = name_in(*document, "source");
  const Result<std::string> destination = name_in(*document, "destination");
  if (!source || !destination) co_return error_response(!source ? source.error() : destination.error());
  std::function<Result<void>(ModelRegistry&)> work = [from = *source, to = *destination](ModelRegistry& registry) {
    return registry.copy(from, to);
  };
  const Result<void> done = co_await ask_registry(*service, std::move(work));
  co_return nothing_or(done);
}

asio::awaitable<http::Response> remove(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) co_return error_response(document.error());
  const Result<std::string> model = model_in(*document);
  if (!model) co_return error_response(model.error());
  std::function<Result<void>(ModelRegistry&)> work = [name = *model](ModelRegistry& registry) { return registry.remove(name); };
  const Result<void> done = co_await ask_registry(*service, std::move(work));
  co_return nothing_or(done);
}

}  // namespace braid::net::ollama
