#include "net/generation/usage_meter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace braid::net {
namespace {

using http::Clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace

void UsageMeter::add_token(ChoiceUsage& choice, const ChoiceStreams& streams, std::uint32_t index) {
  take_time(choice, streams, index);
  if (!std::exchange(choice.has_begun, true)) set_cached(choice, streams.cached_tokens(index));
  ++usage_.completion_tokens;
}

void UsageMeter::take_time(ChoiceUsage& choice, const ChoiceStreams& streams, std::uint32_t index) {
  const bool first = usage_.completion_tokens == 0;
  if (!first && !times_every_token_) return;
  const Clock::time_point now = Clock::now();
  const Clock::time_point before = std::exchange(choice.last_token, now);
  if (before != Clock::time_point()) counters_.inter_token_ms.observe(milliseconds(now - before));
  const double elapsed = milliseconds(now - start_);
  if (first) {
    counters_.first_token_ms.observe(elapsed);
    usage_.queue_ms = std::min(streams.queue_ms(index), elapsed);
    usage_.prompt_ms = elapsed - usage_.queue_ms;
  }
  usage_.generation_ms = elapsed - usage_.queue_ms - usage_.prompt_ms;
}

// Behind a stop string some may have been right that are no part of the answer.
void UsageMeter::add_drafts(const TokenSource::Drafts& drafts) {
  usage_.accepted_drafts = std::min(usage_.accepted_drafts + drafts.accepted, usage_.completion_tokens);
  usage_.rejected_drafts += drafts.rejected;
}

void UsageMeter::set_cached(ChoiceUsage& choice, std::int32_t tokens) {
  if (choice.counts_prompt) usage_.cached_tokens += tokens - std::exchange(choice.cached_tokens, tokens);
}

void UsageMeter::take_finish(ChoiceUsage& choice, const Usage& told) {
  set_cached(choice, told.cached_tokens);
  add_drafts({told.accepted_drafts, told.rejected_drafts});
  usage_.weight_changes = std::max(usage_.weight_changes, told.weight_changes);
  if (usage_.queue_ms == 0.0) usage_.queue_ms = told.queue_ms;
}

void UsageMeter::count_answer(bool complete, std::int32_t choices, std::int32_t limit) {
  if (!complete) {
    ++counters_.ended_early;
    return;
  }
  if (usage_.completion_tokens == 0) return;  // a vector, or a text that was scored
  counters_.prompt_tokens.observe(usage_.prompt_tokens);
  counters_.generated_tokens.observe(usage_.completion_tokens);
  counters_.token_limits.observe(limit);
  counters_.choices.observe(choices);
  counters_.queue_ms.observe(usage_.queue_ms);
  counters_.prefill_ms.observe(usage_.prompt_ms);
  counters_.answer_ms.observe(milliseconds(Clock::now() - start_));
  const auto prompts = static_cast<std::int64_t>(prompts_);  // of several, the mean stands for the longest
  const std::int64_t tokens = usage_.prompt_tokens / prompts + usage_.completion_tokens / (prompts * choices);
  counters_.longest_tokens = std::max(counters_.longest_tokens, tokens);
  if (!times_every_token_) return;
  counters_.decode_ms.observe(usage_.generation_ms);
  counters_.inference_ms.observe(usage_.prompt_ms + usage_.generation_ms);
  if (usage_.completion_tokens > 1) counters_.mean_token_ms.observe(usage_.generation_ms / (usage_.completion_tokens - 1));
}

}  // namespace braid::net
