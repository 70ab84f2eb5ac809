#include "net/admin/sequences.h"

#include "net/generation/prompts.h"
#include "net/http/error_response.h"
#include "net/http/query.h"
#include "net/json/fields.h"
#include "net/json/parse.h"
#include "net/json/write.h"
#include "net/wish/defaults.h"

#include <fmt/format.h>
#include <iterator>

namespace braid::net::admin {
namespace {

constexpr std::size_t kMaxSlots = 16384;

Result<std::string> read_id(std::string& body) {
  const Result<Value> document = json::parse_object(body);
  if (!document) return document.error();
  const Value* id = document->find("id");
  if (id == nullptr) return invalid_argument("'id' is missing", "id");
  return json::read_string(*id, "id");
}

// Null when it does not run, or is another client's.
const RunningAnswer* find_answer(const Service& service, const std::string& id, std::string_view client) {
  const auto found = service.answers.find(id);
  return found != service.answers.end() && found->second.client->name() == client ? &found->second : nullptr;
}

void append_slot(std::string& out, std::size_t index, const SequenceSnapshot& sequence, std::int32_t context) {
  fmt::format_to(std::back_inserter(out), R"({{"id":{},"n_ctx":{},"request":)", index, context);
  json::append_lossy_string(out, sequence.id);
  out += R"(,"phase":)";
  json::append_string(out, sequence.phase);
  fmt::format_to(std::back_inserter(out),
                 R"(,"is_processing":{},"priority":{},"prompt_tokens":{},"cached_tokens":{},"generated_tokens":{},"max_tokens":{}}})",
                 sequence.phase != "waiting", sequence.priority, sequence.prompt_tokens, sequence.cached_tokens, sequence.generated_tokens,
                 sequence.max_tokens);
}

void append_defaults(std::string& out, const ServedModel& model) {
  Wish wish;
  wish::set_defaults(wish, model.defaults);
  const SamplingParams& sampling = wish.sampling;
  fmt::format_to(std::back_inserter(out),
                 R"({{"n_ctx":{},"params":{{"temperature":{},"top_k":{},"top_p":{},"min_p":{},"typical_p":{},"top_n_sigma":{},)"
                 R"("repeat_penalty":{},"presence_penalty":{},"frequency_penalty":{},"xtc_probability":{},"xtc_threshold":{},)"
                 R"("dry_multiplier":{},"mirostat":{}}}}})",
                 model.context_length, sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.typical_p,
                 sampling.top_n_sigma, sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty,
                 sampling.xtc_probability, sampling.xtc_threshold, sampling.dry_multiplier, sampling.mirostat);
}

}  // namespace

bool cancel_answer(const Service& service, const std::string& id, std::string_view client) {
  const RunningAnswer* answer = find_answer(service, id, client);
  if (answer == nullptr) return false;
  bool any = false;
  Engine& engine = *answer->engine;
  const std::size_t choices = answer->sequences;  // cancelling may end the answer
  for (std::size_t i = 0; i < choices; ++i) any = engine.cancel(choice_id(id, i, choices)) || any;
  return any;
}

http::Response abort(Service& service, std::string& body, std::string_view client) {
  const Result<std::string> id = read_id(body);
  if (!id) return http::error_response(id.error());
  if (!cancel_answer(service, *id, client))
    return http::error_response({ErrorCode::kNotFound, fmt::format("no answer with the id '{}' is running", *id), "id"});
  http::Response response;
  response.body = R"({"id":)";
  json::append_string(response.body, *id);
  response.body += R"(,"object":"abort","aborted":true})";
  return response;
}

http::Response slots(const Service& service, std::string_view client) {
  http::Response response;
  response.body = "[";
  std::size_t index = 0;
  for (const ServedModel* model : service.status.models.all()) {
    for (const SequenceSnapshot& sequence : model->engine->sequences(kMaxSlots)) {
      if (find_answer(service, answer_id(sequence.id), client) == nullptr) continue;
      if (index > 0) response.body += ',';
      append_slot(response.body, index++, sequence, model->context_length);
    }
  }
  response.body += ']';
  return response;
}

http::Response props(const ServiceStatus& status, std::string_view query) {
  const Result<const ServedModel*> served = served_model(status, http::query_value(query, "model").value_or(std::string()));
  if (!served) return http::error_response(served.error());
  const ServedModel& model = **served;
  const ChatPrompt plain;
  http::Response response;
  std::string& out = response.body;
  out = R"({"default_generation_settings":)";
  append_defaults(out, model);
  out += R"(,"model_alias":)";
  json::append_lossy_string(out, model.id);
  out += R"(,"chat_template":)";
  json::append_lossy_string(out, model.codec->template_source(plain));
  out += R"(,"modalities":{"vision":false,"audio":false},"system_fingerprint":)";
  json::append_lossy_string(out, model.fingerprint);
  out += '}';
  return response;
}

}  // namespace braid::net::admin
