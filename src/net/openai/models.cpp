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

}  // namespace

http::Response list_models(const ServiceStatus& status) {
  http::Response response;
  response.body = R"({"object":"list","data":[)";
  std::string_view separator = "";
  for (const ServedModel* model : status.models.all()) {
    response.body += std::exchange(separator, ",");
    append_model(response.body, *model);
  }
  response.body += "]}";
  return response;
}

http::Response show_model(const ServiceStatus& status, const std::string& id) {
  const ServedModel* model = status.models.find(id);
  if (model == nullptr) return http::error_response({ErrorCode::kNotFound, fmt::format("the model '{}' does not exist", id), "model"});
  http::Response response;
  append_model(response.body, *model);
  return response;
}

}  // namespace braid::net::openai
