#include "net/adapters/adapters.h"
#include "net/admin/cache_stats.h"
#include "net/admin/log_tail.h"
#include "net/admin/metrics.h"
#include "net/admin/models.h"
#include "net/admin/pause.h"
#include "net/admin/prefix_cache.h"
#include "net/admin/probes.h"
#include "net/admin/registry_list.h"
#include "net/admin/reload.h"
#include "net/admin/sequences.h"
#include "net/admin/slots.h"
#include "net/anthropic/count_tokens.h"
#include "net/anthropic/dialect.h"
#include "net/anthropic/models.h"
#include "net/docs/documents.h"
#include "net/endpoints/endpoint.h"
#include "net/ollama/blobs.h"
#include "net/ollama/dialects.h"
#include "net/ollama/models.h"
#include "net/ollama/stored_models.h"
#include "net/ollama/transfers.h"
#include "net/openai/models.h"
#include "net/page/page.h"
#include "net/peers/peers.h"
#include "net/predict/predict.h"
#include "net/responses/cancel.h"
#include "net/responses/input_tokens.h"
#include "net/responses/kept.h"
#include "net/rl/act.h"
#include "net/text/tokenizer_info.h"
#include "net/text/tokens.h"
#include "net/training/create.h"
#include "net/weights/weights.h"

#include <array>

namespace braid::net {
namespace {

using http::Method;
using Q = const Question&;

constexpr Answer kHealth = [](Q q) { return admin::health(q.service.status); };
constexpr Answer kLivez = [](Q) { return admin::livez(); };
constexpr Answer kReadyz = [](Q q) { return admin::readyz(q.service.status, q.service.options.changes.get()); };
constexpr Answer kVersion = [](Q q) { return admin::version(q.service.options.version); };
constexpr Answer kLoad = [](Q q) { return admin::load(q.service.counters.active_requests - 1); };  // but for this one
constexpr Answer kMetrics = [](Q q) { return admin::metrics_text(q.service); };
constexpr Answer kMetricsJson = [](Q q) { return admin::metrics_json(q.service); };
constexpr Answer kCacheStats = [](Q q) { return admin::cache_stats(q.service.status, q.query); };
constexpr Answer kModels = [](Q q) {
  return q.speaks_anthropic ? anthropic::list_models(q.service.status, q.query) : openai::list_models(q.service.status);
};
constexpr Answer kModel = [](Q q) {
  return q.speaks_anthropic ? anthropic::show_model(q.service.status, q.argument)
                            : openai::show_model(q.service.status, std::string(q.argument));
};
constexpr Answer kResponse = [](Q q) { return responses::show({q.dialects.stored_responses, q.client}, q.argument, q.query); };
constexpr Answer kDeleteResponse = [](Q q) { return responses::erase({q.dialects.stored_responses, q.client}, q.argument); };
constexpr Answer kCancelResponse = [](Q q) {
  const auto stop = [&q](const std::string& id) { return admin::cancel_answer(q.service, id, q.client); };
  return responses::cancel({q.dialects.stored_responses, q.client}, q.dialects.running_responses, q.argument, q.body, stop);
};
constexpr RecalledJob kInputTokens = {[](Value& body, const ServedModel& model, Dialects& dialects, std::string_view client) {
  return responses::input_tokens(body, model, {dialects.stored_responses, client});
}};
constexpr Answer kAbort = [](Q q) { return admin::abort(q.service, q.body, q.client); };
constexpr Answer kReload = [](Q q) { return admin::reload(q.service, q.body); };
constexpr Answer kLogTail = [](Q q) { return admin::log_tail(q.service.options.log_tail, q.query); };
constexpr Answer kIsSleeping = [](Q q) { return admin::is_sleeping(q.service.status, q.query); };
constexpr Answer kProps = [](Q q) { return admin::props(q.service, q.query); };
constexpr Answer kSlots = [](Q q) { return admin::slots(q.service, q.query, q.client); };
constexpr Answer kResetPrefixCache = [](Q q) { return admin::reset_prefix_cache(q.service, q.body); };
constexpr Answer kPause = [](Q q) { return admin::pause(q.service, q.query, q.body); };
constexpr Answer kResume = [](Q q) { return admin::resume(q.service, q.body); };
constexpr Answer kIsPaused = [](Q q) { return admin::is_paused(q.service.status); };
constexpr Answer kAbortRequests = [](Q q) { return admin::abort_requests(q.service, q.body); };
constexpr Answer kWeightInfo = [](Q q) { return weights::info(q.service.status); };
constexpr Answer kWeightVersion = [](Q q) { return weights::name_version(q.service, q.body); };
constexpr Answer kPeers = [](Q q) { return peers::state(q.service); };
constexpr Answer kTokenizerInfo = [](Q q) { return text::tokenizer_info(q.service.status, q.query); };
constexpr Answer kAdapters = [](Q q) { return adapters::list(q.service.status); };
constexpr Answer kAdapter = [](Q q) { return adapters::show(q.service.status, q.argument); };
constexpr Answer kUnloadAdapter = [](Q q) { return adapters::unload(q.service, q.argument); };
constexpr Answer kUnloadLora = [](Q q) { return adapters::unload_lora(q.service, q.body); };
constexpr Answer kLlamaAdapters = [](Q q) { return adapters::llama_list(q.service.status); };
constexpr Answer kOllamaPs = [](Q q) { return ollama::running(q.service.status); };
constexpr Answer kTrainingJobs = [](Q q) { return q.dialects.training_jobs.list(); };
constexpr Answer kTrainingJob = [](Q q) { return q.dialects.training_jobs.show(q.argument); };
constexpr Answer kCancelTraining = [](Q q) { return q.dialects.training_jobs.cancel(q.argument, q.body); };
constexpr RememberingWork kTrain =
    [](std::shared_ptr<Service> service, std::shared_ptr<http::Connection> connection, Dialects& dialects, std::string body) {
  return training::create(std::move(service), std::move(connection), dialects.training_jobs, std::move(body));
};
constexpr Answer kRoot = [](Q q) {
  http::Response response = q.prefers_html ? page::index() : ollama::root();
  response.headers.emplace_back("Vary", "Accept");
  return response;
};
constexpr Answer kPageFile = [](Q q) { return page::file(q.argument); };
constexpr Answer kOllamaVersion = [](Q) { return ollama::version(); };
constexpr Answer kOpenApi = [](Q) { return docs::openapi(); };
constexpr Answer kDocs = [](Q) { return page::docs(); };

constexpr auto kTable = std::to_array<Endpoint>({
    {Method::kPost, "/completions", false, Caller::kKey, &Dialects::completions},
    {Method::kPost, "/chat/completions", false, Caller::kKey, &Dialects::chat_completions},
    {Method::kPost, "/responses", false, Caller::kKey, &Dialects::responses},
    {Method::kPost, "/responses/input_tokens", false, Caller::kKey, kInputTokens},
    {Method::kPost, "/responses/compact", false, Caller::kKey, &Dialects::compaction},
    {Method::kPost, "/responses/", true, Caller::kKey, kCancelResponse},
    {Method::kGet, "/responses/", true, Caller::kKey, kResponse},
    {Method::kDelete, "/responses/", true, Caller::kKey, kDeleteResponse},
    {Method::kPost, "/messages", false, Caller::kKey, &Dialects::messages},
    {Method::kPost, "/messages/count_tokens", false, Caller::kKey, TextJob{anthropic::count_tokens, &anthropic::kVoice, true}},
    {Method::kPost, "/embeddings", false, Caller::kKey, &Dialects::embeddings},
    {Method::kPost, "/rerank", false, Caller::kKey, &Dialects::rerank},
    {Method::kPost, "/v2/rerank", false, Caller::kKey, &Dialects::rerank},  // Cohere's
    {Method::kPost, "/score", false, Caller::kKey, &Dialects::score},
    {Method::kPost, "/classifications", false, Caller::kKey, &Dialects::classify},
    {Method::kPost, "/classify", false, Caller::kKey, &Dialects::classify},
    {Method::kPost, "/rewards/score", false, Caller::kKey, &Dialects::reward},
    {Method::kPost, "/pooling", false, Caller::kKey, &Dialects::pooling},
    {Method::kPost, "/predict", false, Caller::kKey, predict::answer},
    {Method::kPost, "/rl/act", false, Caller::kKey, PolicyWork{rl::act, &Dialects::text_policy}},
    {Method::kPost, "/rl/rollout", false, Caller::kKey, &Dialects::rollout},
    {Method::kPost, "/perplexity", false, Caller::kKey, &Dialects::perplexity},
    {Method::kPost, "/tokenize", false, Caller::kKey, TextJob{text::tokenize, &kOpenAiVoice, true}},
    {Method::kPost, "/detokenize", false, Caller::kKey, TextJob{text::detokenize}},
    {Method::kPost, "/apply-template", false, Caller::kKey, TextJob{text::apply_template}},
    {Method::kPost, "/abort", false, Caller::kKey, kAbort},
    {Method::kPost, "/completion", false, Caller::kKey, &Dialects::llama_completion},
    {Method::kPost, "/infill", false, Caller::kKey, &Dialects::llama_infill},
    {Method::kPost, "/embedding", false, Caller::kKey, &Dialects::llama_embedding},
    {Method::kPost, "/api/chat", false, Caller::kKey, &Dialects::ollama_chat},
    {Method::kPost, "/api/generate", false, Caller::kKey, &Dialects::ollama_generate},
    {Method::kPost, "/api/embed", false, Caller::kKey, &Dialects::ollama_embed},
    {Method::kPost, "/api/embeddings", false, Caller::kKey, &Dialects::ollama_embeddings},
    {Method::kPost, "/api/show", false, Caller::kKey, Work(ollama::show)},
    {Method::kGet, "/api/tags", false, Caller::kKey, ollama::tags},
    {Method::kPost, "/api/copy", false, Caller::kAdministrator, ollama::copy},
    {Method::kDelete, "/api/delete", false, Caller::kAdministrator, ollama::remove},
    {Method::kPost, "/api/create", false, Caller::kAdministrator, ollama::create},
    {Method::kPost, "/api/pull", false, Caller::kAdministrator, ollama::pull},
    {Method::kPost, "/api/push", false, Caller::kAdministrator, ollama::push},
    {Method::kHead, "/api/blobs/", true, Caller::kAdministrator, ollama::find_blob},
    {Method::kPost, "/api/blobs/", true, Caller::kAdministrator, Upload{ollama::receive_blob}},
    {Method::kGet, "/registry", false, Caller::kKey, admin::list_registry},
    {Method::kGet, "/api/ps", false, Caller::kKey, kOllamaPs},
    {Method::kGet, "/", false, Caller::kAnybody, kRoot},
    {Method::kGet, "/page/", true, Caller::kAnybody, kPageFile},
    {Method::kGet, "/api/version", false, Caller::kAnybody, kOllamaVersion},
    {Method::kPost, "/models/load", false, Caller::kAdministrator, admin::load_model},
    {Method::kPost, "/models/unload", false, Caller::kAdministrator, admin::unload_model},
    {Method::kPost, "/sleep", false, Caller::kAdministrator, admin::sleep},
    {Method::kPost, "/wake_up", false, Caller::kAdministrator, admin::wake},
    {Method::kGet, "/is_sleeping", false, Caller::kKey, kIsSleeping},
    {Method::kGet, "/models", false, Caller::kKey, kModels},
    {Method::kGet, "/models/", true, Caller::kKey, kModel},
    {Method::kGet, "/props", false, Caller::kKey, kProps},
    {Method::kGet, "/slots", false, Caller::kKey, kSlots},
    {Method::kGet, "/load", false, Caller::kMetricsReader, kLoad},
    {Method::kGet, "/cache/stats", false, Caller::kKey, kCacheStats},
    {Method::kGet, "/tokenizer_info", false, Caller::kKey, kTokenizerInfo},
    {Method::kPost, "/adapters", false, Caller::kAdministrator, adapters::load},
    {Method::kGet, "/adapters", false, Caller::kKey, kAdapters},
    {Method::kGet, "/adapters/", true, Caller::kKey, kAdapter},
    {Method::kDelete, "/adapters/", true, Caller::kAdministrator, kUnloadAdapter},
    {Method::kPost, "/load_lora_adapter", false, Caller::kAdministrator, adapters::load_lora},
    {Method::kPost, "/unload_lora_adapter", false, Caller::kAdministrator, kUnloadLora},
    {Method::kPost, "/training/jobs", false, Caller::kAdministrator, kTrain},
    {Method::kGet, "/training/jobs", false, Caller::kAdministrator, kTrainingJobs},
    {Method::kGet, "/training/jobs/", true, Caller::kAdministrator, kTrainingJob},
    {Method::kPost, "/training/jobs/", true, Caller::kAdministrator, kCancelTraining},
    {Method::kPost, "/update_adapter_weights", false, Caller::kAdministrator, adapters::update},
    {Method::kGet, "/lora-adapters", false, Caller::kKey, kLlamaAdapters},
    {Method::kPost, "/update_weights", false, Caller::kAdministrator, weights::update},
    {Method::kPost, "/update_weight_version", false, Caller::kAdministrator, kWeightVersion},
    {Method::kPost, "/weight_checker", false, Caller::kAdministrator, Work(weights::check)},
    {Method::kGet, "/weight_info", false, Caller::kAdministrator, kWeightInfo},
    {Method::kGet, "/peers", false, Caller::kAdministrator, kPeers},
    {Method::kPost, "/peers/changes", false, Caller::kAdministrator, Work(peers::take)},
    {Method::kPost, "/pause", false, Caller::kAdministrator, kPause},
    {Method::kPost, "/resume", false, Caller::kAdministrator, kResume},
    {Method::kGet, "/is_paused", false, Caller::kAdministrator, kIsPaused},
    {Method::kPost, "/abort_requests", false, Caller::kAdministrator, kAbortRequests},
    {Method::kPost, "/reset_prefix_cache", false, Caller::kAdministrator, kResetPrefixCache},
    {Method::kPost, "/reload", false, Caller::kAdministrator, kReload},
    {Method::kPost, "/admin/reload", false, Caller::kAdministrator, kReload},
    {Method::kGet, "/admin/log", false, Caller::kAdministrator, kLogTail},
    {Method::kGet, "/health", false, Caller::kAnybody, kHealth},
    {Method::kGet, "/ping", false, Caller::kAnybody, kHealth},
    {Method::kGet, "/version", false, Caller::kAnybody, kVersion},
    {Method::kGet, "/livez", false, Caller::kAnybody, kLivez},
    {Method::kGet, "/readyz", false, Caller::kAnybody, kReadyz},
    {Method::kGet, "/metrics", false, Caller::kMetricsReader, kMetrics},
    {Method::kGet, "/v1/metrics", false, Caller::kMetricsReader, kMetricsJson},
    {Method::kGet, "/openapi.json", false, Caller::kAnybody, kOpenApi},
    {Method::kGet, "/docs", false, Caller::kAnybody, kDocs},
});

}  // namespace

std::span<const Endpoint> endpoints() { return kTable; }

bool is_open(const Endpoint& endpoint, const ServerOptions& options) {
  return endpoint.caller == Caller::kAnybody || (endpoint.caller == Caller::kMetricsReader && options.open_metrics);
}

const Voice& voice_of(const Endpoint& endpoint, const Dialects& dialects, bool speaks_anthropic) {
  if (const auto* dialect = std::get_if<DialectOf>(&endpoint.handler)) return (dialects.**dialect)->voice();
  if (const auto* job = std::get_if<TextJob>(&endpoint.handler)) return *job->voice;
  if (endpoint.path.starts_with("/api/")) return ollama::kVoice;
  return speaks_anthropic ? anthropic::kVoice : kOpenAiVoice;
}

}  // namespace braid::net
