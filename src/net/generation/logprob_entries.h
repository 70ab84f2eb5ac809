// Log-probabilities of an answer's tokens, in the form that OpenAI's APIs and Ollama's share.
#pragma once

#include "braid/text_codec.h"
#include "braid/token_event.h"

#include <span>
#include <string>

namespace braid::net {

// {"token":…,"logprob":…,"bytes":[…],"top_logprobs":[…]} per token, comma-separated; `as_ids`: each called as below.
void append_logprob_entries(std::string& out, const TextCodec& codec, std::span<const Token> tokens, bool as_ids = false);

// token_id:7, as vLLM's return_tokens_as_token_ids has it.
std::string name_by_id(TokenId id);

}  // namespace braid::net
