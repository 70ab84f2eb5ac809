#include "net/openai/models.h"

#include "braid/adapted_name.h"
#include "braid/adapters.h"
#include "braid/model_host.h"
#include "net/http/error_response.h"
#include "net/json/write.h"

#include <fmt/format.h>
#include <iterator>
#include <string_view>
#include <utility>

namespace braid::net::openai {
namespace {

// OpenAI's members, then vLLM's max_model_len and what llama-server keeps in `meta`.
void append_model(std::string& out, const ServedModel& model) {
  out += R"({"id":)";
  json::append_lossy_string(out, model.id);
  fmt::format_to(std::back_inserter(out), R"(,"object":"model","created":{},"owned_by":"braid","max_model_len":{},"meta":{{)",
                 model.created, model.context_length);
  out += R"("architecture":)";
  json::append_lossy_string(out, model.architecture);
  fmt::format_to(std::back_inserter(out), R"(,"n_params":{},"n_vocab":{}}}}})", model.parameters, model.codec->vocab_size());
}

// As vLLM lists them: a model whose parent is its base.
void append_adapter(std::string& out, const ServedModel& base, const AdapterFacts& facts) {
  out += R"({"id":)";
  json::append_lossy_string(out, facts.name);
  fmt::format_to(std::back_inserter(out), R"(,"object":"model","created":{},"owned_by":"braid","max_model_len":{},"parent":)",
                 facts.created, base.context_length);
  json::append_lossy_string(out, base.id);
  out += R"(,"root":)";
  json::append_lossy_string(out, facts.path);
  fmt::format_to(std::back_inserter(out), R"(,"meta":{{"architecture":"lora","n_params":{},"rank":{},"revision":"{}"}}}})",
                 facts.parameters, facts.rank, facts.revision);
}

void append_adapters(std::string& out, const ServedModel& base) {
  if (base.adapters == nullptr) return;
  for (const AdapterFacts& facts : base.adapters->list()) {
    out += ',';
    append_adapter(out, base, facts);
  }
}

std::string_view name_of(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kLoaded:
      return "loaded";
    case ModelState::kUnloading:
      return "unloading";
    case ModelState::kAsleep:
      return "sleeping";
  }
  return "";
}

// One that may have to be loaded, and what it is now.
void append_known(std::string& out, const KnownModel& model) {
  if (model.loaded != nullptr) {
    append_model(out, *model.loaded);
    out.pop_back();
  } else {
    out += R"({"id":)";
    json::append_lossy_string(out, model.id);
    fmt::format_to(std::back_inserter(out), R"(,"object":"model","created":{},"owned_by":"braid")", model.modified);
  }
  fmt::format_to(std::back_inserter(out), R"(,"status":{{"value":"{}","file_bytes":{},"memory_bytes":{})", name_of(model.state),
                 model.bytes, model.memory);
  if (!model.failure.empty()) {
    out += R"(,"failure":)";
    json::append_lossy_string(out, model.failure);
  }
  out += "}}";
}

// What answers /v1/predict; it has no context and no vocabulary.
void append_network(std::string& out, const ServedNetwork& network) {
  out += R"({"id":)";
  json::append_lossy_string(out, network.id);
  fmt::format_to(
      std::back_inserter(out),
      R"(,"object":"model","created":{},"owned_by":"braid","meta":{{"architecture":"braid-net","n_params":{},"revision":"{}"}}}})",
      network.created, network.parameters, network.revision);
}

}  // namespace

http::Response list_models(const ServiceStatus& status) {
  http::Response response;
  response.body = R"({"object":"list","data":[)";
  std::string_view separator = "";
  if (status.host != nullptr) {
    for (const KnownModel& model : status.host->known()) {
      response.body += std::exchange(separator, ",");
      append_known(response.body, model);
      if (model.loaded != nullptr) append_adapters(response.body, *model.loaded);
    }
  } else {
    for (const ServedModel* model : status.models.all()) {
      response.body += std::exchange(separator, ",");
      append_model(response.body, *model);
      append_adapters(response.body, *model);
    }
  }
  for (const ServedNetwork* network : status.models.networks()) {
    response.body += std::exchange(separator, ",");
    append_network(response.body, *network);
  }
  response.body += "]}";
  return response;
}

http::Response show_model(const ServiceStatus& status, const std::string& id) {
  http::Response response;
  const Result<std::string> known = status.host != nullptr ? status.host->find(id) : Result<std::string>(std::string());
  if (const ServedNetwork* network = status.models.find_network(id)) {
    append_network(response.body, *network);
  } else if (const std::optional<AdaptedName> adapted = adapted_name(status.models, id)) {
    for (const AdapterFacts& facts : adapted->base->adapters->list())
      if (facts.name == adapted->adapter) append_adapter(response.body, *adapted->base, facts);
    if (response.body.empty())
      return http::error_response({ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", adapted->adapter), "model"});
  } else if (!known) {
    return http::error_response(known.error());
  } else if (!known->empty()) {
    for (const KnownModel& model : status.host->known())
      if (model.id == *known) append_known(response.body, model);
  } else if (const ServedModel* model = status.models.find(id)) {
    append_model(response.body, *model);
  } else {
    return http::error_response({ErrorCode::kNotFound, fmt::format("the model '{}' does not exist", id), "model"});
  }
  return response;
}

}  // namespace braid::net::openai
