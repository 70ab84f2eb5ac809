// What stands between a parsed call and its sequences: the rules of its client's account, and the engine's queue.
#pragma once

#include "braid/engine.h"
#include "braid/generation_request.h"
#include "braid/result.h"
#include "braid/served_model.h"
#include "net/access/account.h"
#include "net/access/rules.h"
#include "net/generation/call.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid::net {

// Of a request that asks for `asked`, or for none; `is_urgent` as Wish has it. kInvalidArgument: its client may not ask for it.
Result<std::int32_t> priority_by_rules(const access::Rules& rules, std::optional<std::int32_t> asked, bool is_urgent);

// Gives the call the priority and the cache salt that its client's requests have. kInvalidArgument when it asks for what they may not.
Result<void> apply_rules(const access::Rules& rules, GenerationCall& call);

// The model with the fingerprint of what submit_all() has its requests use now. Errors are those of Adapters::current().
Result<ModelHold> with_current_fingerprint(ModelHold model);

// A ticket for each request to `model`, or to it with other adapters, or none at all. Where nobody is to begin with the weights that a request
// names any more, it gets those that are current. Takes `prompt_tokens` from the client's account, and gives them back when it is refused.
// Loop only.
Result<std::vector<Ticket>> submit_all(const ServedModel& model, access::Visit& visit, std::vector<GenerationRequest> requests,
                                       std::size_t prompt_tokens);

}  // namespace braid::net
