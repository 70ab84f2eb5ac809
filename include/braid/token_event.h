// What comes back for a GenerationRequest: PromptTokens where asked for, any number of Token or one PooledVector, then exactly one
// Finish.
#pragma once

#include "braid/generation_request.h"
#include "braid/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace braid {

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0.0F;
};

// What only a token has of which it was asked for.
struct TokenDetails {
  std::vector<TokenLogprob> top = {};                // best first
  float drawn_logprob = 0.0F;                        // of what sampling made of the model's distribution; 0 for a greedy one
  std::shared_ptr<const std::string> revision = {};  // AdapterUse's, of the first token that it made; null for all others
};

// Small: thousands of streams may each hold many.
struct Token {
  Token() = default;
  Token(TokenId its_id, float its_logprob) : id(its_id), logprob(its_logprob) {}
  Token(TokenId its_id, float its_logprob, TokenDetails its_details)
      : id(its_id), logprob(its_logprob), details(std::make_unique<const TokenDetails>(std::move(its_details))) {}
  Token(const Token& other)
      : id(other.id), logprob(other.logprob), details(other.details ? std::make_unique<const TokenDetails>(*other.details) : nullptr) {}
  Token(Token&&) noexcept = default;
  Token& operator=(const Token& other) { return *this = Token(other); }
  Token& operator=(Token&&) noexcept = default;
  ~Token() = default;

  TokenId id = 0;
  float logprob = 0.0F;                         // of the model's own distribution; 0 unless asked for
  std::unique_ptr<const TokenDetails> details;  // null: there are none

  std::span<const TokenLogprob> top() const { return details ? details->top : std::span<const TokenLogprob>(); }
  float drawn_logprob() const { return details ? details->drawn_logprob : 0.0F; }
  const std::string* revision() const { return details ? details->revision.get() : nullptr; }
};

// Log-probabilities of consecutive prompt tokens; the first token of a prompt has none. They come in order, before the first Token.
struct PromptToken {
  TokenId id = 0;
  std::optional<float> logprob;
  std::vector<TokenLogprob> top;  // best first
};
struct PromptTokens {
  std::vector<PromptToken> tokens;
};

// What GenerationRequest::pooling asks for.
struct PooledVector {
  std::vector<float> values;  // [the model's width], or [classes]; of kEach [tokens] of these; each a finite number
};

enum class FinishReason {
  kStop,       // an end-of-sequence or stop token was sampled (it is delivered as a Token before), or a PooledVector is complete
  kLength,     // max_tokens or the context is used up
  kCancelled,  // the ticket was destroyed, or shutdown took it
  kError,      // `error` says why
};

struct Usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t completion_tokens = 0;
  std::int32_t cached_tokens = 0;
  std::int32_t reasoning_tokens = 0;  // of the completion's; counted by who reads the text, 0 from the engine
  std::int32_t accepted_drafts = 0;   // tokens that were guessed (braid/speculation.h), and right or wrong
  std::int32_t rejected_drafts = 0;
  std::int32_t weight_changes = 0;  // times that newer weights took the place of those that it was computed with
  double queue_ms = 0.0;            // until the engine took it up; for several choices the first one's
  double prompt_ms = 0.0;           // to the first token, and from there on: measured where answers are written, 0 from the engine
  double generation_ms = 0.0;
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  Usage usage;
  std::optional<Error> error;  // set for kError, and for a kCancelled that the server caused
};

using TokenEvent = std::variant<Token, Finish, PromptTokens, PooledVector>;

}  // namespace braid
