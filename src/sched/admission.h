// Whether a request can ever run, asked once, when it is submitted.
#pragma once

#include "sched/options.h"

#include <braid/request.h>
#include <braid/result.h>

#include <cstdint>

namespace braid::sched {

// The number of tokens the request may generate: its max_tokens, cut to the room left in the context and in the whole KV pool, so
// that a sequence that has the machine for itself always reaches its end (with FinishReason::kLength). The last token is never
// written to the cache, so a pool of n positions holds a prompt of n and still gives one token.
// 0 only where that was asked for: then the prompt may fill the context.
// kContextLength or kInvalidArgument when there is no room for a single one.
Result<std::int32_t> answer_room(const Request& request, const SchedulerOptions& options);

}  // namespace braid::sched
