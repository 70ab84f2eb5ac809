// Ollama's /api/embed and the older /api/embeddings: prompts to vectors.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::ollama {

// {"input": text or texts} → {"embeddings":[[…],…]}, each vector of length 1. With "truncate", which is the default, what the context has no
// room for is cut off the end of a text.
std::unique_ptr<const Dialect> embed();

// {"prompt": text} → {"embedding":[…]}; an empty one gives none. The text is cut likewise.
std::unique_ptr<const Dialect> embeddings();

}  // namespace braid::net::ollama
