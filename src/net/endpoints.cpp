#include "net/endpoints.h"

#include "net/admin/cache_stats.h"
#include "net/admin/probes.h"
#include "net/admin/sequences.h"
#include "net/anthropic/count_tokens.h"
#include "net/anthropic/message_format.h"
#include "net/anthropic/request.h"
#include "net/docs/documents.h"
#include "net/http/error_response.h"
#include "net/metrics/exposition.h"
#include "net/openai/formats.h"
#include "net/openai/models.h"
#include "net/openai/request.h"
#include "net/responses/kept.h"
#include "net/responses/request.h"
#include "net/responses/response_format.h"
#include "net/text/perplexity.h"
#include "net/text/tokens.h"

#include <ctime>
#include <fmt/format.h>

namespace braid::net {
namespace {

openai::AnswerIdentity identity_of(const std::string& id, const ServedModel& model) {
  return {id, static_cast<std::int64_t>(std::time(nullptr)), model.id, model.fingerprint};
}

// A parser of a dialect without memory.
template <Result<GenerationCall> (*parse)(std::string& body, const ServedModel& model)>
Result<GenerationCall> parse_alone(std::string& body, const ServedModel& model, const responses::Shelf&) {
  return parse(body, model);
}

constexpr Dialect kCompletions = {"cmpl", parse_alone<openai::parse_completion>,
                                  [](const std::string& id, const ServedModel& model, const GenerationCall& call) {
  return openai::completion_format(identity_of(id, model), *model.codec, call);
                                  },
                                  http::error_response};

constexpr Dialect kChat = {"chatcmpl", parse_alone<openai::parse_chat>,
                           [](const std::string& id, const ServedModel& model, const GenerationCall& call) {
  return openai::chat_format(identity_of(id, model), *model.codec, call);
                           },
                           http::error_response};

constexpr Dialect kResponses = {"resp", responses::parse_response, responses::response_format, responses::error_response};

constexpr Dialect kMessages = {"msg", parse_alone<anthropic::parse_message>,
                               [](const std::string& id, const ServedModel& model, const GenerationCall& call) {
  return anthropic::message_format(id, model, call.timings);
                               },
                               anthropic::error_response};

constexpr Dialect kPerplexity = {
    "ppl", parse_alone<openai::parse_scored>,
    [](const std::string&, const ServedModel& model, const GenerationCall&) { return text::perplexity_format(model); },
    http::error_response};

constexpr TextJob kTokenize = {text::tokenize, http::error_response};
constexpr TextJob kDetokenize = {text::detokenize, http::error_response};
constexpr TextJob kApplyTemplate = {text::apply_template, http::error_response};
constexpr TextJob kCountTokens = {anthropic::count_tokens, anthropic::error_response};

http::Response metrics(Service& service, bool as_json) {
  if (!service.options.metrics) return http::error_response({ErrorCode::kNotFound, "this server runs with --metrics off", ""});
  const FamilyList families = gather_metrics(service.counters, *service.connections, service.status, service.system.take());
  http::Response response;
  if (as_json) {
    response.body = fmt::format(R"({{"object":"metrics","created":{},"metrics":{}}})", std::time(nullptr), families.json());
  } else {
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = families.text();
  }
  return response;
}

}  // namespace

const Dialect* dialect_of(Endpoint endpoint) {
  if (endpoint == Endpoint::kCompletions) return &kCompletions;
  if (endpoint == Endpoint::kChatCompletions) return &kChat;
  if (endpoint == Endpoint::kResponses) return &kResponses;
  if (endpoint == Endpoint::kMessages) return &kMessages;
  if (endpoint == Endpoint::kPerplexity) return &kPerplexity;
  return nullptr;
}

const TextJob* text_job_of(Endpoint endpoint) {
  if (endpoint == Endpoint::kTokenize) return &kTokenize;
  if (endpoint == Endpoint::kDetokenize) return &kDetokenize;
  if (endpoint == Endpoint::kApplyTemplate) return &kApplyTemplate;
  if (endpoint == Endpoint::kCountTokens) return &kCountTokens;
  return nullptr;
}

bool is_open(Endpoint endpoint, const ServerOptions& options) {
  switch (endpoint) {
    case Endpoint::kHealth:
    case Endpoint::kLivez:
    case Endpoint::kReadyz:
    case Endpoint::kOpenApi:
    case Endpoint::kDocs:
      return true;
    case Endpoint::kMetrics:
    case Endpoint::kMetricsJson:
      return options.open_metrics;
    default:
      return false;
  }
}

http::Response refuse(Endpoint endpoint, const Error& error) {
  if (const Dialect* dialect = dialect_of(endpoint)) return dialect->refuse(error);
  if (const TextJob* job = text_job_of(endpoint)) return job->refuse(error);
  return http::error_response(error);
}

http::Response answer_now(Service& service, const Route& route, std::string& body, std::string_view client) {
  switch (route.endpoint) {
    case Endpoint::kHealth:
      return admin::health();
    case Endpoint::kLivez:
      return admin::livez();
    case Endpoint::kReadyz:
      return admin::readyz(service.status);
    case Endpoint::kMetrics:
      return metrics(service, false);
    case Endpoint::kMetricsJson:
      return metrics(service, true);
    case Endpoint::kCacheStats:
      return admin::cache_stats(service.status);
    case Endpoint::kModels:
      return openai::list_models(service.status);
    case Endpoint::kModel:
      return openai::show_model(service.status, route.argument);
    case Endpoint::kResponse:
      return responses::show({service.stored_responses, client}, route.argument, route.query);
    case Endpoint::kDeleteResponse:
      return responses::erase({service.stored_responses, client}, route.argument);
    case Endpoint::kAbort:
      return admin::abort(service, body, client);
    case Endpoint::kProps:
      return admin::props(service.status);
    case Endpoint::kSlots:
      return admin::slots(service, client);
    case Endpoint::kOpenApi:
      return docs::openapi();
    case Endpoint::kDocs:
      return docs::page();
    case Endpoint::kCompletions:
    case Endpoint::kChatCompletions:
    case Endpoint::kResponses:
    case Endpoint::kMessages:
    case Endpoint::kCountTokens:
    case Endpoint::kPerplexity:
    case Endpoint::kTokenize:
    case Endpoint::kDetokenize:
    case Endpoint::kApplyTemplate:
      break;
  }
  return http::error_response({ErrorCode::kInternal, "this endpoint takes its time", ""});
}

}  // namespace braid::net
