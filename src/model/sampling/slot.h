// The sampling state of one sequence. Lives and advances on the strand.
#pragma once

#include "braid/constraint.h"
#include "braid/generation_request.h"
#include "model/sampling/sampler.h"
#include "model/sampling/token_history.h"
#include "step/step.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

class Slot {
 public:
  // `known`: the start's history; `end_tokens`: the model's own end-of-sequence tokens.
  void start(const step::SlotStart& start, std::span<const TokenId> known, std::span<const TokenId> end_tokens);

  bool finished() const { return finished_; }
  bool has_sampled() const { return has_sampled_; }
  TokenId last_token() const { return last_; }
  std::int32_t tokens_left() const { return max_tokens_ - generated_; }  // of its answer
  std::int32_t top_logprobs() const { return sampling_.top_logprobs; }

  // What the token at `position` is chosen by. Until min_tokens are there, tokens that end the sequence are banned.
  SamplingState state(std::int64_t position);

  // Takes the next token and decides whether the sequence goes on. Nullopt: there is none, the sequence ends by an error.
  void accept(const std::optional<SampledToken>& sampled, step::RowResult& row);

  // Its constraint where it stands; null: none.
  std::unique_ptr<ConstraintState> look_ahead() const { return constraint_state_ != nullptr ? constraint_state_->copy() : nullptr; }
  // Whether this token would be the last one.
  bool ends(TokenId token) const;

  // Ends the sequence without a token, because a step that names it failed.
  void abandon();

 private:
  SamplingParams sampling_;
  std::optional<TokenHistory> history_;
  std::shared_ptr<const Constraint> constraint_;
  std::unique_ptr<ConstraintState> constraint_state_;  // null: none
  float mirostat_mu_ = 0.0F;
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
