#include "net/weights/weights.h"

#include "net/http/error_response.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/service/asked_model.h"
#include "net/service/changes.h"
#include "net/weights/sources.h"

#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <spdlog/spdlog.h>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::net::weights {
namespace {

namespace asio = boost::asio;

// Whose weights are meant. A model is in use for as long as it is held; networks outlive every session.
struct Target {
  std::string id;
  LiveWeights* weights = nullptr;
  ModelHold hold;
};

// A network or a model that is loaded; without a name the first model, or the only network.
Result<Target> find_target(const ServiceStatus& status, const std::string& name) {
  if (status.state == ServiceState::kDraining) return Error{ErrorCode::kDraining, "the server is shutting down", {}};
  const auto networks = status.models.networks();
  const bool is_only = name.empty() && status.models.empty() && networks.size() == 1;
  if (const ServedNetwork* network = is_only ? networks.front() : status.models.find_network(name)) {
    if (network->weights == nullptr) return invalid_argument(fmt::format("the weights of '{}' stay what they are", network->id), "model");
    return Target{network->id, network->weights, {}};
  }
  if (const Result<void> serves = check_service(status); !serves) return serves.error();
  Result<ModelHold> hold = take_model(status, {.name = name, .is_bare = true});
  if (!hold) return hold.error();
  if (*hold == nullptr) return Error{ErrorCode::kNotFound, fmt::format("the model '{}' is not loaded", name), "model"};
  const ServedModel& model = **hold;
  if (model.weights == nullptr) return invalid_argument(fmt::format("the weights of '{}' stay what they are", model.id), "model");
  return Target{model.id, model.weights, std::move(*hold)};
}

void append_facts(std::string& out, std::string_view id, const WeightFacts& facts) {
  out += R"({"object":"weights")";
  json::append_member(out, "model", id);
  json::append_member(out, "revision", facts.revision);
  json::append_member(out, "version", facts.version);
  fmt::format_to(std::back_inserter(out), R"(,"created":{},"updates":{}}})", facts.created, facts.updates);
}

http::Response facts_of(const Target& target) {
  http::Response response;
  append_facts(response.body, target.id, target.weights->facts());
  return response;
}

struct Wanted {
  Target target;
  WeightSource source;
  UpdateMode mode = UpdateMode::kFinish;
  std::string version;
};

// For the servers beside this one.
void note(const Service& service, const Target& target, bool is_partial, std::string revision, std::string body) {
  Change change;
  change.model = target.id;
  change.revision = std::move(revision);
  change.kind = is_partial ? ChangeKey::Kind::kPart : ChangeKey::Kind::kAll;
  change.body = std::move(body);
  service.options.changes->note(std::move(change));
}

Result<Wanted> read_update(const Service& service, std::string& body) {
  Result<Body> read = read_body(body, {service.options.weights_dirs, "--weights-dir", service.options.changes != nullptr});
  if (!read) return read.error();
  Members& members = read->members;
  if (read->source.tensors.empty()) members.refuse_others({"model", "mode", "version", "path", "shared_memory", "partial", "checksum"});
  const std::string name = members.text("model", false);
  Wanted wanted;
  wanted.mode = mode_of(members);
  wanted.version = members.text("version", false);
  if (members.error) return *members.error;
  wanted.source = std::move(read->source);
  Result<Target> target = find_target(service.status, name);
  if (!target) return target.error();
  wanted.target = std::move(*target);
  return wanted;
}

// `revision`: that another server has made of it, which is to come of it here; empty: it is an administrator's.
asio::awaitable<Result<http::Response>> update_now(const Service& service, std::string body, std::string revision) {
  const bool is_noted = service.options.changes != nullptr && revision.empty();
  std::string noted = is_noted ? body : std::string();
  Result<Wanted> wanted = read_update(service, body);
  if (!wanted) co_return wanted.error();
  wanted->source.revision = std::move(revision);
  const bool is_partial = wanted->source.partial;
  LiveWeights& weights = *wanted->target.weights;
  // Named, because g++ 12 destroys some temporaries of such an expression twice.
  asio::awaitable<Result<WeightFacts>> updating = weights.update(std::move(wanted->source), wanted->mode);
  const Result<WeightFacts> facts = co_await std::move(updating);
  if (!facts) co_return facts.error();
  if (!wanted->version.empty()) weights.name_version(wanted->version);
  spdlog::info("weights of {}: revision {}, update {}", wanted->target.id, facts->revision, facts->updates);
  if (is_noted) note(service, wanted->target, is_partial, facts->revision, std::move(noted));
  co_return facts_of(wanted->target);
}

// The body may be empty.
Result<Members> read_members(std::string& body) {
  if (body.empty()) return Members(Value(ValueDict()));
  Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  return Members(std::move(*document));
}

std::string document_of(const Target& target, const WeightFacts& facts, const std::vector<TensorDigest>& digests) {
  std::string out = R"({"object":"weight_digests")";
  json::append_member(out, "model", target.id);
  json::append_member(out, "revision", facts.revision);
  out += R"(,"tensors":[)";
  std::string_view separator = "";
  for (const TensorDigest& digest : digests) {
    out += std::exchange(separator, ",");
    out += R"({"name":)";
    json::append_lossy_string(out, digest.name);
    fmt::format_to(std::back_inserter(out), R"(,"shape":[{}],"sha256":"{}"}})", fmt::join(digest.shape, ","), digest.sha256);
  }
  out += "]}";
  return out;
}

asio::awaitable<Result<http::Response>> check_now(const Service& service, std::string body) {
  Result<Members> members = read_members(body);
  if (!members) co_return members.error();
  members->refuse_others({"model"});
  const std::string name = members->text("model", false);
  if (members->error) co_return *members->error;
  const Result<Target> target = find_target(service.status, name);
  if (!target) co_return target.error();
  const WeightFacts facts = target->weights->facts();
  asio::awaitable<Result<std::vector<TensorDigest>>> adding = target->weights->digests();
  const Result<std::vector<TensorDigest>> digests = co_await std::move(adding);
  if (!digests) co_return digests.error();
  http::Response response;
  response.body = document_of(*target, facts, *digests);
  co_return response;
}

// What a request comes to, whatever is thrown.
asio::awaitable<http::Response> answered(asio::awaitable<Result<http::Response>> work, std::string_view what) {
  Result<http::Response> response = Error{ErrorCode::kInternal, "the request failed inside the server", ""};
  try {
    response = co_await std::move(work);
  } catch (const std::exception& bug) {
    spdlog::error("{}: {}", what, bug.what());
  }
  co_return response ? std::move(*response) : http::error_response(response.error());
}

}  // namespace

asio::awaitable<http::Response> update(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  asio::awaitable<http::Response> updating = update_as(std::move(service), std::move(body), {});
  co_return co_await std::move(updating);
}

asio::awaitable<http::Response> update_as(std::shared_ptr<Service> service, std::string body, std::string revision) {
  asio::awaitable<Result<http::Response>> work = update_now(*service, std::move(body), std::move(revision));
  asio::awaitable<http::Response> answer = answered(std::move(work), "updating weights");
  co_return co_await std::move(answer);
}

asio::awaitable<http::Response> check(std::shared_ptr<Service> service, std::shared_ptr<http::Connection>, std::string body) {
  asio::awaitable<Result<http::Response>> work = check_now(*service, std::move(body));
  asio::awaitable<http::Response> answer = answered(std::move(work), "checking weights");
  co_return co_await std::move(answer);
}

http::Response info(const ServiceStatus& status) {
  http::Response response;
  response.body = R"({"object":"list","data":[)";
  std::string_view separator = "";
  for (const ServedModel* model : status.models.all()) {
    if (model->weights == nullptr) continue;
    response.body += std::exchange(separator, ",");
    append_facts(response.body, model->id, model->weights->facts());
  }
  for (const ServedNetwork* network : status.models.networks()) {
    if (network->weights == nullptr) continue;
    response.body += std::exchange(separator, ",");
    append_facts(response.body, network->id, network->weights->facts());
  }
  response.body += "]}";
  return response;
}

http::Response name_version(Service& service, std::string& body) {
  Result<Members> members = read_members(body);
  if (!members) return http::error_response(members.error());
  members->refuse_others({"model", "new_version"});
  const std::string name = members->text("model", false);
  std::string version = members->text("new_version", true);
  if (members->error) return http::error_response(*members->error);
  const Result<Target> target = find_target(service.status, name);
  if (!target) return http::error_response(target.error());
  target->weights->name_version(std::move(version));
  return facts_of(*target);
}

}  // namespace braid::net::weights
