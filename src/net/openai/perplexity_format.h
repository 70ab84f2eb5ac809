// POST /v1/perplexity: how well the model predicts a text. A generation that samples nothing and scores its prompt.
#pragma once

#include "braid/served_model.h"
#include "net/generation/answer_format.h"

#include <memory>

namespace braid::net::openai {

// {"model":…,"tokens":…,"nll_mean":…,"perplexity":…,"usage":…}. `tokens` are those with a probability, all but the first; the mean
// of their negative natural log-probabilities is `nll_mean`, and its exponential the perplexity.
std::unique_ptr<AnswerFormat> perplexity_format(const ServedModel& model);

}  // namespace braid::net::openai
