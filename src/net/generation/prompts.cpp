#include <fmt/format.h>
#include <net/generation/prompts.h>

#include <algorithm>
#include <utility>

namespace braid::net {
namespace {

using Prompts = std::vector<std::vector<TokenId>>;

Result<Prompts> encode_chat(const TextCodec& codec, const ChatPrompt& chat) {
  const Result<std::string> text = codec.render(chat);
  if (!text) return text.error();
  const EncodeOptions options{.add_special = false, .parse_special = true};
  Result<std::vector<TokenId>> ids = codec.encode(*text, options);
  if (!ids) return ids.error();
  Prompts prompts;
  prompts.push_back(std::move(*ids));
  return prompts;
}

Result<Prompts> encode_items(const TextCodec& codec, const std::vector<PromptItem>& items) {
  const EncodeOptions options{.add_special = true, .parse_special = true};
  Prompts prompts;
  for (const PromptItem& item : items) {
    if (const auto* ids = std::get_if<std::vector<TokenId>>(&item)) {
      prompts.push_back(*ids);
      continue;
    }
    Result<std::vector<TokenId>> ids = codec.encode(std::get<std::string>(item), options);
    if (!ids) return ids.error();
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

}  // namespace

Result<Prompts> encode_prompts(const TextCodec& codec, const GenerationCall& call) {
  const auto* chat = std::get_if<ChatPrompt>(&call.prompt);
  return chat != nullptr ? encode_chat(codec, *chat) : encode_items(codec, std::get<std::vector<PromptItem>>(call.prompt));
}

Result<std::vector<Request>> make_requests(const ServedModel& model, const GenerationCall& call, const std::string& id,
                                           std::uint64_t seed, Prompts prompts) {
  const std::string field = std::holds_alternative<ChatPrompt>(call.prompt) ? "messages" : "prompt";
  std::vector<Request> requests;
  for (auto& prompt : prompts) {
    if (prompt.empty()) return invalid_argument(fmt::format("'{}' is empty: it gives no token to start from", field), field);
    const auto length = static_cast<std::int64_t>(prompt.size());
    const std::int64_t room = model.context_length - length;
    if (room < 1) {
      return Error{ErrorCode::kContextLength,
                   fmt::format("the prompt is {} tokens long, and the context holds {} with at least one for the answer", length,
                               model.context_length),
                   field};
    }
    Request request;
    request.id = id;
    request.prompt = std::move(prompt);
    request.sampling = call.sampling;
    request.stop = call.stop;
    request.cache_salt = call.cache_salt;
    if (prompts.size() > 1) request.id += fmt::format("/{}", requests.size());
    request.sampling.seed = seed;
    request.sampling.choice = static_cast<std::uint32_t>(requests.size());
    request.stop.max_tokens =
        static_cast<std::int32_t>(std::min<std::int64_t>(call.max_tokens.value_or(model.context_length), room));
    request.stop.min_tokens = std::min(request.stop.min_tokens, request.stop.max_tokens);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace braid::net
