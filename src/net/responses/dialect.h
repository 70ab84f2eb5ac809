// OpenAI's Responses as a dialect: one that remembers.
#pragma once

#include "net/generation/dialect.h"
#include "net/responses/store.h"

#include <memory>

namespace braid::net::responses {

// `store` outlives it.
std::unique_ptr<const Dialect> responses(ResponseStore& store);

}  // namespace braid::net::responses
