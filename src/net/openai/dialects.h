// What of OpenAI's API generates, as dialects.
#pragma once

#include "net/generation/dialect.h"

#include <memory>

namespace braid::net::openai {

std::unique_ptr<const Dialect> completions();
std::unique_ptr<const Dialect> chat_completions();
std::unique_ptr<const Dialect> embeddings();
std::unique_ptr<const Dialect> perplexity();  // no part of OpenAI's API, but in its form

}  // namespace braid::net::openai
