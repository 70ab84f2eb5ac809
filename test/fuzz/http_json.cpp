#include "fuzz/http_json.h"

#include "fuzz/require.h"
#include "net/anthropic/count_tokens.h"
#include "net/anthropic/request.h"
#include "net/endpoints/router.h"
#include "net/fake_codec.h"
#include "net/fake_constraints.h"
#include "net/generation/forced_calls.h"
#include "net/generation/prompts.h"
#include "net/generation/thinking_budget.h"
#include "net/http/error_response.h"
#include "net/http/request_reader.h"
#include "net/json/parse.h"
#include "net/ollama/request.h"
#include "net/openai/embeddings.h"
#include "net/openai/request.h"
#include "net/responses/request.h"
#include "net/responses/store.h"
#include "net/rl/act_request.h"
#include "net/rl/dialects.h"
#include "net/text/tokens.h"
#include "net/training/job_request.h"
#include "net/weights/sources.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid::test {
namespace {

using Stage = net::http::RequestReader::Stage;

constexpr net::http::ReadLimits kLimits = {4096, 65536};

void require_client_error(const Error& error) {
  require(net::http::status_of(error.code) < 500 && !error.message.empty());
  require(!net::http::error_response(error).body.empty());
}

Result<net::Wish> read(Value& body, const ServedModel& model, BodyKind kind) {
  net::responses::ResponseStore none;
  switch (kind) {
    case BodyKind::kCompletion:
      return net::openai::read_completion(body, model);
    case BodyKind::kChat:
      return net::openai::read_chat(body, model);
    case BodyKind::kResponse:
      return net::responses::read_response(body, model, {none, ""});
    case BodyKind::kScored:
      return net::openai::read_scored(body, model);
    case BodyKind::kEmbedded:
      return net::openai::read_embeddings(body, model);
    case BodyKind::kOllamaChat:
      return net::ollama::read_chat(body, model);
    case BodyKind::kOllamaPrompt:
      return net::ollama::read_generate(body, model);
    case BodyKind::kRollout:
      return net::rl::rollout()->read(body, model, "");
    case BodyKind::kTextPolicy:
      return net::rl::text_policy()->read(body, model, "");
    default:
      return net::anthropic::read_message(body, model);
  }
}

using Answer = Result<net::TextAnswer> (*)(Value& body, const ServedModel& model);

// Null for the kinds that generate.
Answer text_answer(BodyKind kind) {
  switch (kind) {
    case BodyKind::kCount:
      return net::anthropic::count_tokens;
    case BodyKind::kTokenize:
      return net::text::tokenize;
    case BodyKind::kDetokenize:
      return net::text::detokenize;
    case BodyKind::kTemplate:
      return net::text::apply_template;
    default:
      return nullptr;
  }
}

// A policy of two observations in a row and a state, which is never asked.
class SilentPolicy final : public Predictor {
 public:
  std::span<const TensorSignature> inputs() const override { return inputs_; }
  std::span<const TensorSignature> outputs() const override { return outputs_; }
  const PolicyForm* policy() const override { return &form_; }
  Result<std::unique_ptr<PendingPrediction>> submit(std::vector<std::optional<Tensor>>, std::vector<std::size_t>, std::int32_t) override {
    return invalid_argument("it is silent");
  }

 private:
  std::vector<TensorSignature> inputs_{{.name = "x", .type = ElementType::kFloat32, .shape = {{-1, "batch"}, {2, {}}}, .optional = false},
                                       {.name = "s", .type = ElementType::kFloat32, .shape = {{-1, "batch"}}, .optional = true}};
  std::vector<TensorSignature> outputs_{
      {.name = "logits", .type = ElementType::kFloat32, .shape = {{-1, "batch"}, {2, {}}}, .optional = false},
      {.name = "t", .type = ElementType::kFloat32, .shape = {{-1, "batch"}}, .optional = false}};
  PolicyForm form_{.states = {{1, 1}}};
};

void fuzz_step(std::string body) {
  SilentPolicy policy;
  const ServedNetwork network{.id = "policy", .created = 0, .parameters = 0, .revision = "r", .predictor = &policy};
  for (const bool may_generate : {false, true}) {
    std::string copy = body;
    const auto request = net::rl::read_act(ModelDirectory({}, false, {&network}), may_generate, copy);
    if (!request) {
      require_client_error(request.error());
    } else if (*request) {
      require((*request)->network == &network && (*request)->inputs.size() == 2);
    }
  }
}

void fuzz_newer_weights(std::string body) {
  static const std::vector<std::string> folders = {"/nothing/there"};
  const auto read = net::weights::read_body(body, {folders, "--weights-dir"});
  if (!read) return require_client_error(read.error());
  require(read->source.path.empty() != read->source.tensors.empty());
}

void fuzz_job(Value& document, const ServedModel& model) {
  const auto job = net::training::read_job(document, model);
  if (!job) return require_client_error(job.error());
  require(!job->adapter.empty() && !job->examples.empty());
  require(!job->lora || (job->lora->shape.rank >= 1 && job->lora->shape.rank <= LoraShape::kMostRank && !job->lora->shape.modules.empty() &&
                         job->lora->batch >= 1));
  for (const net::training::Example& example : job->examples)
    require(example.text < job->texts.size() && example.rejected.value_or(0) < job->texts.size());
}

void require_json(std::string text) { require(net::json::parse(text).has_value()); }

constexpr std::pair<std::string_view, BodyKind> kKinds[] = {
    {"/completions", BodyKind::kCompletion},    {"/chat/completions", BodyKind::kChat},       {"/responses", BodyKind::kResponse},
    {"/messages", BodyKind::kMessage},          {"/messages/count_tokens", BodyKind::kCount}, {"/perplexity", BodyKind::kScored},
    {"/embeddings", BodyKind::kEmbedded},       {"/api/chat", BodyKind::kOllamaChat},         {"/api/generate", BodyKind::kOllamaPrompt},
    {"/tokenize", BodyKind::kTokenize},         {"/detokenize", BodyKind::kDetokenize},       {"/apply-template", BodyKind::kTemplate},
    {"/rl/rollout", BodyKind::kRollout},        {"/rl/act", BodyKind::kPolicyStep},           {"/rl/act", BodyKind::kTextPolicy},
    {"/training/jobs", BodyKind::kTrainingJob}, {"/update_weights", BodyKind::kNewerWeights},
};

void follow(net::http::Request request) {
  const net::Resolution resolution = net::resolve(request.method, request.target);
  if (const auto* answered = std::get_if<net::Answered>(&resolution)) return require(answered->response.status < 500);
  const net::Endpoint& endpoint = *std::get<net::Route>(resolution).endpoint;
  for (const auto& [path, kind] : kKinds)
    if (path == endpoint.path && endpoint.method == net::http::Method::kPost) fuzz_body(request.body, kind);
}

}  // namespace

void fuzz_body(std::string_view body, BodyKind kind) {
  const FakeCodec codec;
  const FakeCompiler compiler;
  const ServedModel model = {"fake-model", 0, 1000, "fake", 42, nullptr, &codec, &compiler};
  std::string text(body);
  if (kind == BodyKind::kPolicyStep) return fuzz_step(std::move(text));
  if (kind == BodyKind::kNewerWeights) return fuzz_newer_weights(std::move(text));
  Result<Value> document = net::json::parse_object(text);
  if (!document) return require_client_error(document.error());
  if (kind == BodyKind::kTrainingJob) return fuzz_job(*document, model);
  if (const Answer answer = text_answer(kind)) {
    const Result<net::TextAnswer> answered = answer(*document, model);
    return answered ? require_json(answered->document) : require_client_error(answered.error());
  }
  Result<net::Wish> wish = read(*document, model, kind);
  if (!wish) return require_client_error(wish.error());
  net::GenerationCall call(std::move(*wish));
  auto prompts = net::encode_prompts(model, call);
  if (!prompts) return require_client_error(prompts.error());
  if (call.tools && call.tools->required) net::forced_calls(*call.tools, *call.syntax);
  call.constraint = net::with_thinking_budget(codec, call);
  const auto requests = net::make_requests(model, call, "id", 1, std::move(*prompts), net::kOpenAiVoice);
  if (!requests) return require_client_error(requests.error());
  for (const GenerationRequest& request : *requests) {
    require(!request.prompt.empty() && request.stop.max_tokens >= 0);
    require(static_cast<std::int64_t>(request.prompt.size()) + request.stop.max_tokens <= model.context_length);
    require(std::all_of(request.prompt.begin(), request.prompt.end(), [](TokenId id) { return id >= 0 && id < kVocab; }));
  }
}

void fuzz_http_json(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::size_t piece = 1 + static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  std::string input;
  auto reader = std::make_unique<net::http::RequestReader>(kLimits);
  while (!bytes.empty()) {
    input += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool more = true; more;) {
      input.erase(0, reader->feed(input));
      more = reader->stage() == Stage::kComplete && !input.empty();
      if (reader->stage() == Stage::kFailed) return require(reader->failure().status < 500 || reader->failure().status == 501);
      if (reader->stage() != Stage::kComplete) break;
      follow(reader->take());
      reader = std::make_unique<net::http::RequestReader>(kLimits);
    }
  }
}

}  // namespace braid::test
