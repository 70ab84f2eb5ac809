#include "net/endpoints/dialects.h"

#include "net/anthropic/dialect.h"
#include "net/llama/dialects.h"
#include "net/ollama/dialects.h"
#include "net/ollama/embeddings.h"
#include "net/openai/dialects.h"
#include "net/responses/compaction.h"
#include "net/responses/dialect.h"
#include "net/rl/dialects.h"
#include "net/scores/dialects.h"

namespace braid::net {

Dialects::Dialects()
    : completions(openai::completions()), chat_completions(openai::chat_completions()), embeddings(openai::embeddings()),
      perplexity(openai::perplexity()), responses(responses::responses(stored_responses, running_responses)),
      compaction(responses::compaction(stored_responses)), messages(anthropic::messages()), llama_completion(llama::completion()),
      llama_infill(llama::infill()), llama_embedding(llama::embedding()), ollama_chat(ollama::chat()), ollama_generate(ollama::generate()),
      ollama_embed(ollama::embed()), ollama_embeddings(ollama::embeddings()), rerank(scores::rerank()), score(scores::score()),
      classify(scores::classify()), reward(scores::reward()), pooling(scores::pooling()), rollout(rl::rollout()),
      text_policy(rl::text_policy()) {}

}  // namespace braid::net
