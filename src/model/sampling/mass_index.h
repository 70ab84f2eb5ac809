// The masses of a vocabulary's weights by runs of tokens, so that a draw from all of it looks at single tokens in one run only.
#pragma once

#include "braid/generation_request.h"
#include "kernels/kernel_table.h"
#include "model/sampling/candidate_list.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// Allocates at construction only. One thread. Sums are in double and in one order on all tiers.
class MassIndex {
 public:
  MassIndex(const kernels::KernelTable& table, std::int32_t vocab);

  // Sums those of [vocab] weights that are positive and better than `floor`; returns their mass.
  double measure(std::span<const float> weights, Candidate floor);

  // Of the tokens that were measured, the one at which the running sum by ascending ids passes `target`; nullopt when there is
  // none.
  std::optional<TokenId> find(std::span<const float> weights, double target) const;

 private:
  const kernels::KernelTable& table_;
  std::vector<double> sums_;  // by run
  Candidate floor_;
};

}  // namespace braid::model
