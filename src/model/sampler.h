// Picks one token from a row of logits. The order is that of Hugging Face and vLLM: temperature, then top-k, then top-p over what
// top-k left, then min-p relative to the best; ties go to the lowest id. Candidates are selected, never sorted in full.
#pragma once

#include <braid/request.h>
#include <braid/token_event.h>
#include <kernels/kernel_table.h>

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

struct SampledToken {
  TokenId token = 0;
  float logprob = 0.0F;          // log-softmax of the raw logits; 0 unless top_logprobs >= 0
  std::uint32_t top_count = 0;   // entries written to `top`
};

// Owns the scratch of one thread; allocates at construction only.
class Sampler {
 public:
  Sampler(const kernels::KernelTable& table, std::int32_t vocab);

  // `position` is the absolute position of the token to be sampled. `banned` cannot be picked (log-probabilities still see them).
  // `top` has room for params.top_logprobs entries and receives the best tokens, best first.
  SampledToken sample(std::span<const float> logits, const SamplingParams& params, std::int64_t position,
                      std::span<const TokenId> banned, std::span<TokenLogprob> top);

 private:
  struct Candidate {
    float weight;
    TokenId id;
  };
  static bool better(const Candidate& a, const Candidate& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.id < b.id);
  }

  void report(std::span<const float> logits, std::span<TokenLogprob> top, SampledToken& out);
  TokenId pick(std::span<const float> logits, const SamplingParams& params, double uniform, std::span<const TokenId> banned);
  void keep_top_k(std::size_t k);
  void keep_above(float threshold);
  void keep_top_p(double mass);
  TokenId draw_from_candidates(double uniform, TokenId fallback) const;
  TokenId draw_from_all(double uniform, TokenId fallback);

  const kernels::KernelTable& table_;
  std::vector<float> weights_;            // [vocab]: unnormalised probabilities, the best is 1
  std::vector<Candidate> candidates_;
  std::vector<double> block_sums_;
};

}  // namespace braid::model
