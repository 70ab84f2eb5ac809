// Tokens and their numbers as lists of JSON.
#pragma once

#include "braid/served_model.h"
#include "braid/token_event.h"
#include "net/wish/wish.h"

#include <span>
#include <string>

namespace braid::net::rl {

// What a learner needs of every answer: its tokens and their log-probabilities.
void want_tokens(Wish& wish);

// The revision of all that the answers of this model depend on: with what it is asked for now; and that which made the last of these tokens.
const std::string& revision_of(const ServedModel& model);
const std::string& revision_of(std::span<const Token> tokens, const ServedModel& model);

// Ranges of tokens [begin, end), each with the revision that made them.
void append_revisions(std::string& out, std::span<const Token> tokens, const ServedModel& model);

void append_numbers(std::string& out, std::span<const float> numbers);

void append_ids(std::string& out, std::span<const TokenId> ids);

// Of each token the log-probability: the model's, or that of what was drawn from.
void append_logprobs(std::string& out, std::span<const Token> tokens);
void append_drawn_logprobs(std::string& out, std::span<const Token> tokens);

}  // namespace braid::net::rl
