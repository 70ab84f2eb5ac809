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
#include "net/text/tokens.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

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

void require_json(std::string text) { require(net::json::parse(text).has_value()); }

constexpr std::pair<std::string_view, BodyKind> kKinds[] = {
    {"/completions", BodyKind::kCompletion}, {"/chat/completions", BodyKind::kChat},       {"/responses", BodyKind::kResponse},
    {"/messages", BodyKind::kMessage},       {"/messages/count_tokens", BodyKind::kCount}, {"/perplexity", BodyKind::kScored},
    {"/embeddings", BodyKind::kEmbedded},    {"/api/chat", BodyKind::kOllamaChat},         {"/api/generate", BodyKind::kOllamaPrompt},
    {"/tokenize", BodyKind::kTokenize},      {"/detokenize", BodyKind::kDetokenize},       {"/apply-template", BodyKind::kTemplate},
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
  Result<Value> document = net::json::parse_object(text);
  if (!document) return require_client_error(document.error());
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
