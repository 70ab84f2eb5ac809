// What a dialect's parser makes of a request body: the prompts, still as text or messages, and everything about the answer.
#pragma once

#include <braid/request.h>
#include <braid/text_codec.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace braid::net {

using PromptItem = std::variant<std::string, std::vector<TokenId>>;

struct GenerationCall {
  std::variant<std::vector<PromptItem>, ChatPrompt> prompt;  // one choice per item, or one for a chat
  SamplingParams sampling;                                   // `choice` is set per choice; `seed` only if `seeded`
  bool seeded = false;
  StopRules stop;                          // its max_tokens is replaced by the member below
  std::optional<std::int32_t> max_tokens;  // nullopt: the rest of the context
  std::vector<std::string> stop_strings;
  std::string cache_salt;  // as in Request
  bool stream = false;
  bool include_usage = false;
  bool return_token_ids = false;

  bool wants_logprobs() const { return sampling.top_logprobs >= 0; }
};

}  // namespace braid::net
