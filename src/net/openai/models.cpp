#include "net/openai/models.h"

#include "braid/adapters.h"
#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/service/asked_model.h"

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
  for (const ServedModel* model : status.models.all()) {
    response.body += std::exchange(separator, ",");
    append_model(response.body, *model);
    if (model->adapters == nullptr) continue;
    for (const AdapterFacts& facts : model->adapters->list()) {
      response.body += ',';
      append_adapter(response.body, *model, facts);
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
  if (const ServedNetwork* network = status.models.find_network(id)) {
    append_network(response.body, *network);
  } else if (const std::optional<AdaptedName> adapted = adapted_name(status.models, id)) {
    for (const AdapterFacts& facts : adapted->base->adapters->list())
      if (facts.name == adapted->adapter) append_adapter(response.body, *adapted->base, facts);
    if (response.body.empty())
      return http::error_response({ErrorCode::kNotFound, fmt::format("the adapter '{}' is not loaded", adapted->adapter), "model"});
  } else if (const ServedModel* model = status.models.find(id)) {
    append_model(response.body, *model);
  } else {
    return http::error_response({ErrorCode::kNotFound, fmt::format("the model '{}' does not exist", id), "model"});
  }
  return response;
}

}  // namespace braid::net::openai
