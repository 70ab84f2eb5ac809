#include "http_json.h"

#include <net/generation/prompts.h>
#include <net/http/error_response.h>
#include <net/http/request_reader.h>
#include <net/openai/request.h>
#include <net/router.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include "net/fake_codec.h"

namespace braid::test {
namespace {

using Stage = net::http::RequestReader::Stage;

constexpr net::http::ReadLimits kLimits = {4096, 65536};

void require(bool condition) {
  if (!condition) std::abort();
}

void require_client_error(const Error& error) {
  require(net::http::status_of(error.code) < 500 && !error.message.empty());
  require(!net::http::error_response(error).body.empty());
}

void follow(net::http::Request request) {
  const net::Resolution resolution = net::resolve(request.method, request.target);
  if (const auto* response = std::get_if<net::http::Response>(&resolution)) return require(response->status < 500);
  const net::Endpoint endpoint = std::get<net::Route>(resolution).endpoint;
  if (endpoint == net::Endpoint::kCompletions) fuzz_body(request.body, false);
  if (endpoint == net::Endpoint::kChatCompletions) fuzz_body(request.body, true);
}

}  // namespace

void fuzz_body(std::string_view body, bool chat) {
  const FakeCodec codec;
  const ServedModel model = {"fake-model", 0, 1000, "fake", 42, nullptr, &codec};
  std::string text(body);
  Result<net::GenerationCall> call = chat ? net::openai::parse_chat(text, model) : net::openai::parse_completion(text, model);
  if (!call) return require_client_error(call.error());
  auto prompts = net::encode_prompts(codec, *call);
  if (!prompts) return require_client_error(prompts.error());
  const auto requests = net::make_requests(model, *call, "id", 1, std::move(*prompts));
  if (!requests) return require_client_error(requests.error());
  for (const Request& request : *requests) {
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
      if (reader->stage() == Stage::kFailed) return require(reader->failure().status < 500);
      if (reader->stage() != Stage::kComplete) break;
      follow(reader->take());
      reader = std::make_unique<net::http::RequestReader>(kLimits);
    }
  }
}

}  // namespace braid::test
