// What is added to and taken from logits before anything is cut. Pure functions.
#pragma once

#include "braid/generation_request.h"
#include "model/sampling/token_history.h"

#include <limits>
#include <span>

namespace braid::model {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// OpenAI's logit_bias: added to the raw logits.
void add_bias(std::span<const LogitBias> bias, std::span<float> logits);

// In this order, for every token that has been seen:
// - repetition_penalty r (Keskar et al., "CTRL", 2019; Hugging Face's RepetitionPenaltyLogitsProcessor): once for a token that
// occurs
//   in the window of prompt and answer, logit / r where it is positive, logit * r otherwise;
// - frequency_penalty and presence_penalty (OpenAI): logit - count * frequency - presence for a token that occurs in the answer.
void apply_penalties(const SamplingParams& sampling, std::span<const TokenHistory::Count> counts, std::span<float> logits);

// Top-n-sigma (Tang et al., "Top-nsigma: not all logits are you need", 2024): what lies further below the largest logit than n
// standard deviations of all finite logits becomes -infinity. The temperature does not change what is left.
void keep_top_n_sigma(float n, float largest, std::span<float> logits);

}  // namespace braid::model
