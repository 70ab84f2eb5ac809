// OpenAI's Responses as a dialect: one that remembers.
#pragma once

#include "net/generation/dialect.h"
#include "net/responses/running.h"
#include "net/responses/store.h"

#include <memory>

namespace braid::net::responses {

// Both outlive it.
std::unique_ptr<const Dialect> responses(ResponseStore& store, RunningResponses& running);

}  // namespace braid::net::responses
