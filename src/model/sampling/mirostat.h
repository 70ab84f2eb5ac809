// Mirostat (Basu et al., "Mirostat: a neural text decoding algorithm that directly controls perplexity", ICLR 2021): keeps the
// surprise of the sampled tokens, -log2 of their probabilities, near tau by moving a bound mu. Pure functions; the state is mu.
#pragma once

#include "braid/generation_request.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid::model {

inline constexpr std::size_t kMirostatFitted = 100;  // best tokens from which version 1 estimates the distribution's slope

inline float mirostat_start(const SamplingParams& sampling) { return 2.0F * sampling.mirostat_tau; }

// Version 1: how many best tokens to draw from, in [1, vocab]. `best`: the largest weights, descending, at most kMirostatFitted.
std::size_t mirostat_top_k(std::span<const double> best, float mu, std::int32_t vocab);

// Version 2: the least probability that a token must have, 2^-mu; the best token stays in any case.
double mirostat_least_probability(float mu);

// mu after a token that had this probability among those it was drawn from.
float mirostat_next(const SamplingParams& sampling, float mu, double probability);

}  // namespace braid::model
