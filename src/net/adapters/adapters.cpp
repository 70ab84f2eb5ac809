#include "net/adapters/adapters.h"

#include "net/adapters/facts.h"
#include "net/adapters/sources.h"
#include "net/http/error_response.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/service/asked_model.h"
#include "net/service/changes.h"
#include "net/service/registry_jobs.h"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <spdlog/spdlog.h>
#include <utility>

namespace braid::net::adapters {
namespace {

namespace asio = boost::asio;

// As vLLM's clients expect it.
http::Response said(std::string text) {
  http::Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

http::Response not_loaded(std::string_view name) {
  return http::error_response({ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", name), "name"});
}

http::Response facts_of(const ServedModel& base, const AdapterFacts& facts) {
  http::Response response;
  append_facts(response.body, base, facts);
  return response;
}

// The base that adapters are asked for, in use.
Result<ModelHold> base_of(const ServiceStatus& status, const std::string& name) {
  if (const Result<void> serves = check_service(status); !serves) return serves.error();
  Result<ModelHold> base = take_model(status, {.name = name, .is_bare = true});
  if (!base) return base;
  if (*base == nullptr) return Error{ErrorCode::kNotFound, fmt::format("the model '{}' is not loaded", name), "model"};
  if ((*base)->adapters == nullptr) return invalid_argument(fmt::format("the model '{}' takes no adapters", (*base)->id), "model");
  return base;
}

bool is_of_a_model(const ModelDirectory& models, std::string_view name) {
  return models.find_network(name) != nullptr ||
         std::ranges::any_of(models.all(), [&](const ServedModel* model) { return model->id == name; });
}

struct Loaded {
  ModelHold base;
  AdapterFacts facts;
};

// Where the registry has it, which says so on a thread of its own.
asio::awaitable<Result<std::string>> stored_path(Service& service, std::string name) {
  std::function<Result<StoredModel>(ModelRegistry&)> question = [name](ModelRegistry& registry) { return registry.find(name); };
  asio::awaitable<Result<StoredModel>> asking = ask_registry<StoredModel>(service, std::move(question));
  Result<StoredModel> stored = co_await std::move(asking);
  if (stored) co_return std::move(stored->path);
  Error error = stored.error();
  error.param = "registry";
  co_return error;
}

asio::awaitable<Result<Loaded>> load_from(Service& service, Wanted wanted) {
  if (!wanted.stored.empty()) {
    asio::awaitable<Result<std::string>> looking = stored_path(service, wanted.stored);
    Result<std::string> path = co_await std::move(looking);
    if (!path) co_return path.error();
    wanted.source.path = std::move(*path);
  }
  if (is_of_a_model(service.status.models, wanted.name))
    co_return invalid_argument(fmt::format("'{}' is the name of a model, which it would mean: choose another one", wanted.name), "name");
  const Result<ModelHold> base = base_of(service.status, wanted.model);
  if (!base) co_return base.error();
  Adapters& adapters = *(*base)->adapters;
  // Named, because g++ 12 destroys some temporaries of such an expression twice.
  asio::awaitable<Result<AdapterFacts>> loading = adapters.load(wanted.name, std::move(wanted.source), wanted.replacing);
  const Result<AdapterFacts> facts = co_await std::move(loading);
  if (!facts) co_return facts.error();
  spdlog::info("adapter {} of {}: revision {}, rank {}, {} bytes", facts->name, (*base)->id, facts->revision, facts->rank, facts->bytes);
  co_return Loaded{*base, *facts};
}

// For the servers beside this one.
void note(const Service& service, Change::Route route, bool is_partial, const Loaded& loaded, std::string body) {
  Change change;
  change.model = loaded.base->id;
  change.adapter = loaded.facts.name;
  change.revision = loaded.facts.revision;
  if (route == Change::Route::kUpdateAdapter) change.kind = is_partial ? ChangeKey::Kind::kPart : ChangeKey::Kind::kUpdate;
  change.route = route;
  change.body = std::move(body);
  service.options.changes->note(std::move(change));
}

// What a route reads, and answers.
struct Way {
  Change::Route route;
  Result<Wanted> (*read)(std::string& body, const Service& service);
  http::Response (*tell)(const Loaded& loaded);
};

// `revision`: that another server has made of it, which is to come of it here; empty: it is an administrator's.
asio::awaitable<http::Response> run(std::shared_ptr<Service> service, std::string body, Way way, std::string revision = {}) {
  Result<Loaded> loaded = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  const bool is_noted = service->options.changes != nullptr && revision.empty();
  try {
    std::string noted = is_noted ? body : std::string();
    Result<Wanted> wanted = way.read(body, *service);
    if (!wanted) co_return http::error_response(wanted.error());
    if (!revision.empty() && !wanted->replacing) wanted->replacing = UpdateMode::kFinish;
    wanted->source.revision = std::move(revision);
    const bool is_partial = wanted->source.partial;
    asio::awaitable<Result<Loaded>> loading = load_from(*service, std::move(*wanted));
    loaded = co_await std::move(loading);
    if (loaded && is_noted) note(*service, way.route, is_partial, *loaded, std::move(noted));
  } catch (const std::exception& bug) {
    spdlog::error("loading an adapter: {}", bug.what());
  }
  if (!loaded) co_return http::error_response(loaded.error());
  co_return way.tell(*loaded);
}

http::Response tell_facts(const Loaded& loaded) { return facts_of(*loaded.base, loaded.facts); }
http::Response tell_vllm(const Loaded& loaded) {
  return said(fmt::format("Success: LoRA adapter '{}' added successfully.", loaded.facts.name));
}

constexpr Way kLoad{Change::Route::kLoadAdapter, read_load, tell_facts};
constexpr Way kLoadLora{Change::Route::kLoadLora, read_vllm_load, tell_vllm};
constexpr Way kUpdate{Change::Route::kUpdateAdapter, read_update, tell_facts};

http::Response unload_found(const NamedAdapter& found) {
  const Result<void> unloaded = found.base->adapters->unload(found.facts.name);
  if (!unloaded) return http::error_response(unloaded.error());
  spdlog::info("adapter {} of {}: unloaded", found.facts.name, found.base->id);
  http::Response response;
  response.body = R"({"id":)";
  json::append_lossy_string(response.body, found.facts.name);
  response.body += R"(,"object":"adapter","deleted":true})";
  return response;
}

}  // namespace

http::Response list(const ServiceStatus& status) {
  http::Response response;
  response.body = R"({"object":"list","data":[)";
  std::string_view separator = "";
  for (const ServedModel* model : status.models.all()) {
    if (model->adapters == nullptr) continue;
    for (const AdapterFacts& facts : model->adapters->list()) {
      response.body += std::exchange(separator, ",");
      append_facts(response.body, *model, facts);
    }
  }
  response.body += "]}";
  return response;
}

http::Response show(const ServiceStatus& status, std::string_view name) {
  const NamedAdapter found = find(status.models, name);
  return found.base != nullptr ? facts_of(*found.base, found.facts) : not_loaded(name);
}

http::Response unload(const Service& service, std::string_view name) {
  const NamedAdapter found = find(service.status.models, name);
  if (found.base == nullptr) return not_loaded(name);
  Change change;
  change.model = found.base->id;
  change.adapter = found.facts.name;
  change.route = Change::Route::kUnloadAdapter;
  const http::Response response = unload_found(found);
  if (response.status == 200 && service.options.changes != nullptr) service.options.changes->note(std::move(change));
  return response;
}

asio::awaitable<http::Response> unload_as(std::shared_ptr<Service> service, std::string model, std::string name) {
  const NamedAdapter found = find(service->status.models, fmt::format("{}:{}", model, name));
  co_return found.base != nullptr ? unload_found(found) : http::Response();  // it is gone already
}

asio::awaitable<http::Response> load(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  return run(std::move(service), std::move(body), kLoad);
}

asio::awaitable<http::Response> load_as(std::shared_ptr<Service> service, std::string body, std::string revision) {
  return run(std::move(service), std::move(body), kLoad, std::move(revision));
}

asio::awaitable<http::Response> load_lora(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  return run(std::move(service), std::move(body), kLoadLora);
}

asio::awaitable<http::Response> load_lora_as(std::shared_ptr<Service> service, std::string body, std::string revision) {
  return run(std::move(service), std::move(body), kLoadLora, std::move(revision));
}

http::Response unload_lora(const Service& service, std::string& body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return http::error_response(document.error());
  const Value* name = document->find("lora_name");
  if (name == nullptr) return http::error_response(invalid_argument("'lora_name' is missing", "lora_name"));
  const Result<std::string> text = json::read_string(*name, "lora_name");
  if (!text) return http::error_response(text.error());
  const http::Response response = unload(service, *text);
  return response.status == 200 ? said(fmt::format("Success: LoRA adapter '{}' removed successfully.", *text)) : response;
}

asio::awaitable<http::Response> update(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  return run(std::move(service), std::move(body), kUpdate);
}

asio::awaitable<http::Response> update_as(std::shared_ptr<Service> service, std::string body, std::string revision) {
  return run(std::move(service), std::move(body), kUpdate, std::move(revision));
}

http::Response llama_list(const ServiceStatus& status) {
  http::Response response;
  response.body = "[";
  const ServedModel* model = status.models.find({});
  if (model != nullptr && model->adapters != nullptr) {
    for (const AdapterFacts& facts : model->adapters->list()) {
      if (response.body.size() > 1) response.body += ',';
      fmt::format_to(std::back_inserter(response.body), R"({{"id":{},"path":)", facts.number);
      json::append_lossy_string(response.body, facts.path);
      response.body += R"(,"scale":0.0})";
    }
  }
  response.body += ']';
  return response;
}

}  // namespace braid::net::adapters
