// The sampling state of one sequence. Lives and advances on the strand.
#pragma once

#include <braid/request.h>
#include <model/step.h>

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

class Slot {
 public:
  // `end_tokens` are the model's own end-of-sequence tokens.
  void start(const SlotStart& start, std::span<const TokenId> end_tokens);

  bool finished() const { return finished_; }
  bool has_sampled() const { return has_sampled_; }
  TokenId last_token() const { return last_; }
  const SamplingParams& sampling() const { return sampling_; }
  // Tokens that the next draw must not give: those that end the sequence, until min_tokens are there.
  std::span<const TokenId> banned() const;

  // Ends the sequence without a token, because a step that names it failed.
  void abandon() { finished_ = true; }

  // Takes the next token and decides whether the sequence goes on.
  void accept(TokenId token, RowResult& row);

 private:
  SamplingParams sampling_;
  std::vector<TokenId> enders_;  // stop tokens, then end-of-sequence tokens
  std::size_t effective_ = 0;    // leading enders that end this sequence: all, or the stop tokens with ignore_eos
  std::int32_t max_tokens_ = 0;
  std::int32_t min_tokens_ = 0;
  std::int32_t generated_ = 0;
  TokenId last_ = 0;
  bool has_sampled_ = false;
  bool finished_ = true;
};

}  // namespace braid::model
