// What one request uses, and when: its prompts, its tokens as they come, and the times between them.
#pragma once

#include "braid/token_event.h"
#include "net/generation/choice_streams.h"
#include "net/http/connection.h"
#include "net/metrics/counters.h"

#include <cstddef>
#include <cstdint>

namespace braid::net {

// The part of it that belongs to one choice; UsageMeter's.
struct ChoiceUsage {
  http::Clock::time_point last_token{};  // the epoch before the first
  std::int32_t cached_tokens = 0;        // of the request's
  bool has_begun = false;
  bool counts_prompt = true;  // candidates of one prompt share it, and it counts once
};

// Loop only.
class UsageMeter {
 public:
  // `counters` outlive it.
  UsageMeter(Counters& counters, http::Clock::time_point start) : counters_(counters), start_(start) {}

  const Usage& usage() const { return usage_; }

  // `tokens` of all prompts together.
  void set_prompts(std::size_t prompts, std::size_t tokens) {
    prompts_ = prompts;
    usage_.prompt_tokens = static_cast<std::int32_t>(tokens);
  }

  // The clock is read at each token only where somebody wants to know; otherwise at the first one alone.
  void time_every_token(bool wanted) { times_every_token_ = wanted; }

  // A token of `choice`, which is number `index` of `streams`.
  void add_token(ChoiceUsage& choice, const ChoiceStreams& streams, std::uint32_t index);
  // Of a choice that has ended.
  void add_drafts(const TokenSource::Drafts& drafts);
  void add_reasoning(std::int32_t tokens) { usage_.reasoning_tokens += tokens; }

  // Prompt tokens of `choice` that were cached, in place of what was said of it before.
  void set_cached(ChoiceUsage& choice, std::int32_t tokens);

  // What the engine says of a choice that it has ended.
  void take_finish(ChoiceUsage& choice, const Usage& told);

  void count_end(bool cut) { ++(cut ? counters_.ended_cut : counters_.ended_whole); }  // of a choice

  // Once the answer is over: counts all of it. `limit`: the tokens that a choice might have.
  void count_answer(bool complete, std::int32_t choices, std::int32_t limit);

 private:
  void take_time(ChoiceUsage& choice, const ChoiceStreams& streams, std::uint32_t index);

  Usage usage_;
  std::size_t prompts_ = 1;
  Counters& counters_;
  http::Clock::time_point start_;
  bool times_every_token_ = false;
};

}  // namespace braid::net
