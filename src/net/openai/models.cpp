#include "net/openai/models.h"

#include "net/http/error_response.h"
#include "net/json/write.h"
#include "net/openai/request.h"

#include <fmt/format.h>
#include <iterator>

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
  if (status.model != nullptr) append_model(response.body, *status.model);
  response.body += "]}";
  return response;
}

http::Response show_model(const ServiceStatus& status, const std::string& id) {
  http::Response response;
  if (status.model == nullptr || !names_model(*status.model, id))
    return http::error_response({ErrorCode::kNotFound, fmt::format("the model '{}' does not exist", id), "model"});
  append_model(response.body, *status.model);
  return response;
}

}  // namespace braid::net::openai
