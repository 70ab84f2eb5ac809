// DRY, "don't repeat yourself" (proposed for text-generation-webui in 2024; the parameters are llama-server's): a token that would
// prolong a repetition of what was said before is made less likely, the longer the repetition the more.
#pragma once

#include "braid/generation_request.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Holds scratch for sequences of up to `context` tokens; allocates at construction only. One thread.
class DryPenalty {
 public:
  explicit DryPenalty(std::int32_t context);

  // Where the sequence's last L tokens occur earlier in its last dry_penalty_last_n tokens, followed by t, and L is the largest
  // such length for t and at least dry_allowed_length, t's logit loses dry_multiplier * dry_base^(L - dry_allowed_length). A
  // repetition does not reach back over a sequence breaker, and a token that is a breaker by itself loses nothing.
  void apply(const SamplingParams& sampling, std::span<const TokenId> tokens, std::span<float> logits);

 private:
  struct Continuation {
    TokenId token;
    std::int32_t repeated;  // tokens before it that occurred before
  };

  void find_repeats(std::span<const TokenId> tokens);

  std::vector<std::int32_t> repeats_;  // [k]: how many tokens up to the one k before the last equal those up to the last
  std::vector<Continuation> continuations_;
};

}  // namespace braid::model
