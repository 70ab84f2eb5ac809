// How a guess is drawn.
#pragma once

#include "braid/generation_request.h"

#include <cstdint>
#include <vector>

namespace braid::model {

// As the model draws, which has the same seeds at the same positions: where both are of one mind they say the same at a temperature, too. Who
// looks back at the whole text is not followed: the guess is right where that makes no difference. Of `vocab` tokens.
inline SamplingParams drawing(const SamplingParams& target, std::int32_t vocab) {
  SamplingParams sampling = target;
  sampling.repetition_penalty = 1.0F;
  sampling.presence_penalty = 0.0F;
  sampling.frequency_penalty = 0.0F;
  sampling.dry_multiplier = 0.0F;
  sampling.mirostat = 0;
  sampling.top_logprobs = 0;
  std::erase_if(sampling.logit_bias, [vocab](const LogitBias& bias) { return bias.token >= vocab; });
  return sampling;
}

}  // namespace braid::model
