#include <net/admin/probes.h>
#include <net/endpoints.h>
#include <net/http/error_response.h>
#include <net/metrics/exposition.h>
#include <net/openai/formats.h>
#include <net/openai/models.h>
#include <net/openai/request.h>

#include <ctime>

namespace braid::net {
namespace {

openai::AnswerIdentity identity_of(const std::string& id, const ServedModel& model) {
  return {id, static_cast<std::int64_t>(std::time(nullptr)), model.id};
}

constexpr Dialect kCompletions = {"cmpl", openai::parse_completion,
                                  [](const std::string& id, const ServedModel& model, const GenerationCall& call) {
                                    return openai::completion_format(identity_of(id, model), *model.codec, call);
                                  }};

constexpr Dialect kChat = {"chatcmpl", openai::parse_chat,
                           [](const std::string& id, const ServedModel& model, const GenerationCall& call) {
                             return openai::chat_format(identity_of(id, model), *model.codec, call);
                           }};

http::Response metrics(const Service& service) {
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = expose(service.counters, service.connections->size(), service.status);
  return response;
}

}  // namespace

const Dialect* dialect_of(Endpoint endpoint) {
  if (endpoint == Endpoint::kCompletions) return &kCompletions;
  if (endpoint == Endpoint::kChatCompletions) return &kChat;
  return nullptr;
}

http::Response answer_now(const Service& service, const Route& route) {
  switch (route.endpoint) {
    case Endpoint::kHealth:
      return admin::health();
    case Endpoint::kLivez:
      return admin::livez();
    case Endpoint::kReadyz:
      return admin::readyz(service.status);
    case Endpoint::kMetrics:
      return metrics(service);
    case Endpoint::kModels:
      return openai::list_models(service.status);
    case Endpoint::kModel:
      return openai::show_model(service.status, route.argument);
    case Endpoint::kCompletions:
    case Endpoint::kChatCompletions:
      break;
  }
  return http::error_response({ErrorCode::kInternal, "this endpoint generates", ""});
}

}  // namespace braid::net
