// How a dialect writes an answer. One object per request; it keeps what is constant in the answer prepared.
#pragma once

#include "braid/result.h"
#include "braid/token_event.h"
#include "net/generation/answer_event.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid::net {

// What a review of a choice has said (Review).
struct ReviewAnswer {
  std::vector<PromptToken> tokens;  // kLogprobs: of the prompt, then of the answer
  std::vector<float> values;        // otherwise: of the prompt's last token and of each of the answer's a vector, or scores
};

// A whole choice: two arguments deltas in a row never belong to one call, and each call's begin stands before its arguments.
struct ChoiceAnswer {
  ChoicePiece piece;
  ChoiceEnd end;
  std::vector<PromptToken> prompt;         // if the call asks for them
  double mean_logprob = 0.0;               // of its tokens, if the call has more candidates than choices
  std::vector<float> vector = {};          // [the model's width], if the call asks for one instead of an answer
  std::vector<ReviewAnswer> reviews = {};  // in the order of the call's
};

// Members append to `out`: whole server-sent events, or for append_whole a JSON document. A stream is: append_begin; per choice its
// prompt, deltas and one finish, in any mixture of choices; append_end; append_error takes the place of everything that is left. `so_far` counts
// the whole request; a prompt's cached_tokens are known from its first token on.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // After the headers, before the first token.
  virtual void append_begin(std::string& /*out*/, const Usage& /*so_far*/) {}

  // `tokens` have log-probabilities if the call asks for those.
  virtual void append_prompt(std::string& /*out*/, std::uint32_t /*choice*/, std::span<const PromptToken> /*tokens*/,
                             const Usage& /*so_far*/) {}

  // `tokens` are those taken since the last delta; of several deltas that one token brought, the first has them.
  virtual void append_delta(std::string& out, std::uint32_t choice, const Delta& delta, const DeltaTokens& tokens, const Usage& so_far) = 0;
  // The event that ends a choice; `rest` are tokens that made up no delta.
  virtual void append_finish(std::string& out, std::uint32_t choice, const ChoiceEnd& end, const DeltaTokens& rest,
                             const Usage& so_far) = 0;
  virtual void append_end(std::string& out, const Usage& usage) = 0;
  virtual void append_error(std::string& out, const Error& error) = 0;

  virtual void append_whole(std::string& out, std::span<const ChoiceAnswer> choices, const Usage& usage) = 0;
};

}  // namespace braid::net
