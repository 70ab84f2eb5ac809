#include "net/openai/models.h"

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
  } else if (const ServedModel* model = status.models.find(id)) {
    append_model(response.body, *model);
  } else {
    return http::error_response({ErrorCode::kNotFound, fmt::format("the model '{}' does not exist", id), "model"});
  }
  return response;
}

}  // namespace braid::net::openai
