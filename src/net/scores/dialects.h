// What answers with scores instead of text: how well texts fit a query, which classes they are of, what they are worth.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::scores {

// {"query", "documents": texts or objects with "text", "top_n", "return_documents", "raw_scores"}: Cohere's and Jina's.
std::unique_ptr<const Dialect> rerank();
// {"text_1", "text_2"}: vLLM's; one against one or several, or as many against as many.
std::unique_ptr<const Dialect> score();
// {"input", "logits"}: vLLM's /classify.
std::unique_ptr<const Dialect> classify();
// {"input"} or {"messages"}: the scores of a reward model.
std::unique_ptr<const Dialect> reward();
// vLLM's /pooling: {"input", "task": "embed", "token_embed", "classify" or "reward"}.
std::unique_ptr<const Dialect> pooling();

}  // namespace braid::net::scores
