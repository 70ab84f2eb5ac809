// How far one model's predictions are from another's, over many positions.
#pragma once

#include "braid/generation_request.h"

#include <cstdint>
#include <span>

namespace braid::perf {

struct Divergence {
  std::int64_t positions = 0;
  double nll = 0.0;                // sum of -log q(next token)
  double reference_nll = 0.0;      // the same under the reference p
  double squared_change = 0.0;     // sum of the squares of the differences of both
  double reference_entropy = 0.0;  // sum of p's entropies, in nats: the mean of -log p where p draws the tokens
  double kl = 0.0;                 // sum of KL(p || q), in nats: what the mean of -log q has beyond that
  double squared_kl = 0.0;
  double worst_kl = 0.0;
  std::int64_t same_top = 0;  // positions where both have the same largest logit

  void add(const Divergence& other);
};

// Of one position: p from the reference's logits, q from the others.
Divergence compare(std::span<const float> reference, std::span<const float> logits, TokenId next);

}  // namespace braid::perf
