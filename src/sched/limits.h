// Whether a request can ever run, and when one that is refused should come again.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"
#include "sched/options.h"
#include "sched/roster.h"

#include <chrono>
#include <cstdint>

namespace braid::sched {

// The number of tokens the request may generate: its max_tokens, cut to the room left in the context and in the whole KV pool, so
// that a sequence that has the machine for itself always reaches its end (with FinishReason::kLength). The last token is never
// written to the cache, so a pool of n positions holds a prompt of n and still gives one token. Where all groups have a window, a
// pool that holds what a token sees holds all.
// 0 only where that was asked for: then the prompt may fill the context.
// kContextLength or kInvalidArgument when there is no room for a single one.
Result<std::int32_t> answer_room(const GenerationRequest& request, const SchedulerOptions& options);

// Tokens per second, 0: not measured; and the usual length of an answer.
struct MeasuredRates {
  double prefill = 0.0;
  double decode = 0.0;
  double answer_tokens = 0.0;
};

// How long it will take to work off what waits and runs now: prompt tokens that are still to be computed at the one rate, answers at the
// other, each taken to be as long as answers usually are, or as short as its max_tokens. From a second to an hour.
std::chrono::seconds time_to_drain(const Roster& roster, const MeasuredRates& rates);

}  // namespace braid::sched
