// The turns of a conversation: what a user says, and all that follows until he says something again.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "braid/value.h"
#include "net/generation/call.h"

#include <cstddef>
#include <vector>

namespace braid::net {

// Where the turns of these chat messages begin; what stands before the first of them, such as system messages, belongs to none.
std::vector<std::size_t> find_turns(const ValueList& messages);

// encode_prompts() for what drops its oldest turns: what stands before the first and as few of them as leave room for an answer, and not the
// last one; of that, where it alone is too long, its oldest answers with the results of their calls.
Result<std::vector<std::vector<TokenId>>> encode_last_turns(const ServedModel& model, GenerationCall& call);

}  // namespace braid::net
