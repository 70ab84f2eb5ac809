// Picks one token from a row of logits.
//
// The order, where everything is asked for:
//   logit_bias, repetition penalty, frequency and presence penalties, DRY            (penalties.h, dry.h)
//   the constraint's mask, then banned tokens
//   top-n-sigma                                                                      (penalties.h)
//   temperature, as in Hugging Face, vLLM and OpenAI's API: before the other cuts
//   top-k, typical-p, top-p over what these left, min-p relative to the best, XTC    (candidate_list.h; llama-server's order)
//   the draw
// SamplingParams::steps names the cuts and the temperature in an order of its own; the list then has all tokens, and the temperature
// weighs anew what is left of them.
// Mirostat takes the place of all cuts from top-k on (mirostat.h). Temperature 0 takes the best token after banning.
// Ties go to the lowest id everywhere.
#pragma once

#include "braid/constraint.h"
#include "braid/generation_request.h"
#include "braid/token_event.h"
#include "kernels/kernel_table.h"
#include "model/sampling/candidate_list.h"
#include "model/sampling/dry.h"
#include "model/sampling/mass_index.h"
#include "model/sampling/token_history.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// What decides about a row's next token besides its logits: views of a Slot.
struct SamplingState {
  const SamplingParams& params;
  std::int64_t position = 0;              // absolute, of the token to be sampled
  std::span<const TokenId> banned = {};   // cannot be picked, unless the constraint allows nothing else
  const TokenHistory* history = nullptr;  // where penalties need it
  ConstraintState* constraint = nullptr;  // asked for its mask, not advanced
  float mirostat_mu = 0.0F;
};

struct SampledToken {
  TokenId token = 0;
  float mirostat_mu = 0.0F;    // after this token
  float drawn_logprob = 0.0F;  // SamplingParams::drawn_logprob
};

// The log-softmax of raw logits: the model's own distribution, whatever sampling does to it.
struct Logprob {
  float value = 0.0F;
  std::uint32_t top_count = 0;  // entries written to `top`
};

// Owns the scratch of one thread; allocates at construction only.
class Sampler {
 public:
  // Sequences have at most `context` tokens.
  Sampler(const kernels::KernelTable& table, std::int32_t vocab, std::int32_t context);

  // Nullopt when no token is left: everything is banned, or no logit is a number.
  std::optional<SampledToken> sample(std::span<const float> logits, const SamplingState& state);

  // `top` receives the best tokens, best first.
  Logprob log_probability(std::span<const float> logits, TokenId token, std::span<TokenLogprob> top);

 private:
  std::span<const float> adjust(std::span<const float> logits, const SamplingState& state);
  void restrict_to(ConstraintState& constraint);
  void ban(const SamplingState& state);
  LogWeights weigh(std::span<const float> scores, float highest, float temperature);
  SampledToken draw_in_order(std::span<const float> scores, float highest, const SamplingState& state, TokenId best);
  SampledToken draw_from_all(const SamplingState& state, TokenId best);
  SampledToken draw_from_list(const SamplingState& state, TokenId best);
  double mass_drawn_from(const SamplingParams& params);
  SampledToken draw_mirostat_1(const SamplingState& state, TokenId best);
  SampledToken draw_mirostat_2(const SamplingState& state, TokenId best);

  const kernels::KernelTable& table_;
  std::vector<float> scores_;           // [vocab]: adjusted logits, where anything adjusts them
  std::vector<float> weights_;          // [vocab]: probabilities that are not normalised; the best is about 1
  std::vector<std::uint32_t> allowed_;  // one bit for a token
  CandidateList candidates_;
  MassIndex masses_;
  DryPenalty dry_;
};

}  // namespace braid::model
