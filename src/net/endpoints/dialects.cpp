#include "net/endpoints/dialects.h"

#include "net/anthropic/dialect.h"
#include "net/ollama/dialects.h"
#include "net/openai/dialects.h"
#include "net/responses/dialect.h"

namespace braid::net {

Dialects::Dialects()
    : completions(openai::completions()), chat_completions(openai::chat_completions()), embeddings(openai::embeddings()),
      perplexity(openai::perplexity()), responses(responses::responses(stored_responses)), messages(anthropic::messages()),
      ollama_chat(ollama::chat()), ollama_generate(ollama::generate()) {}

}  // namespace braid::net
