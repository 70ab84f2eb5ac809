// Prompts that a request wants to have cut, rather than refused.
#pragma once

#include "braid/result.h"
#include "braid/served_model.h"
#include "net/generation/call.h"

#include <vector>

namespace braid::net {

// Of each prompt the last tokens, as many as the call wants, which become the call's prompt where it was a text; or the first ones, as many as
// the model has room for, or those that close every text behind the first ones. Of two texts, and of an item in a frame, the second one and
// the item are cut, and nothing else. kInvalidArgument: nothing of those would be left. Any thread.
Result<void> cut_prompts(std::vector<std::vector<TokenId>>& prompts, GenerationCall& call, const ServedModel& model);

}  // namespace braid::net
