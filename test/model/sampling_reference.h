// Sampling by the definitions: sorted in full, in double, without a shortcut. What the tests compare the sampler with.
#pragma once

#include "braid/generation_request.h"

#include <vector>

namespace braid::model::test {

// What penalties look at: prompt and answer, the last `generated` tokens are the answer's.
struct Known {
  std::vector<TokenId> tokens;
  std::size_t generated = 0;
};

// Logits after logit_bias, penalties, DRY and banning.
std::vector<double> adjusted_logits(const std::vector<float>& logits, const SamplingParams& params, const Known& known,
                                    const std::vector<TokenId>& banned = {});

// Probabilities of every id, mirostat aside. With XTC they are those of both cases, weighed by its probability.
std::vector<double> defined_distribution(const std::vector<double>& adjusted, const SamplingParams& params);

// Probabilities of every id with mirostat at this mu.
std::vector<double> mirostat_distribution(const std::vector<double>& adjusted, const SamplingParams& params, double mu);

}  // namespace braid::model::test
