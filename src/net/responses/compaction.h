// POST /v1/responses/compact: a conversation whose oldest turns have become a summary.
#pragma once

#include "net/generation/dialect.h"
#include "net/responses/store.h"

#include <memory>

namespace braid::net::responses {

// The answer's `output` is the conversation as items: what systems and developers said, one sealed item with the model's own summary of the
// turns, and the last turn as it is, if it is short beside the context and others stand before it. `store` outlives the dialect.
std::unique_ptr<const Dialect> compaction(ResponseStore& store);

}  // namespace braid::net::responses
