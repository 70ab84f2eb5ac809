#include "perf/model/divergence.h"

#include <algorithm>
#include <cmath>

namespace braid::perf {
namespace {

// log of the sum of exp(logit).
double log_total(std::span<const float> logits) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

}  // namespace

void Divergence::add(const Divergence& other) {
  positions += other.positions;
  nll += other.nll;
  reference_nll += other.reference_nll;
  squared_change += other.squared_change;
  reference_entropy += other.reference_entropy;
  kl += other.kl;
  squared_kl += other.squared_kl;
  worst_kl = std::max(worst_kl, other.worst_kl);
  same_top += other.same_top;
}

Divergence compare(std::span<const float> reference, std::span<const float> logits, TokenId next) {
  const double p_total = log_total(reference);
  const double q_total = log_total(logits);
  double entropy = 0.0;
  double kl = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double log_p = reference[i] - p_total;
    const double p = std::exp(log_p);
    entropy -= p * log_p;
    kl += p * (log_p - (logits[i] - q_total));
  }
  const auto at = static_cast<std::size_t>(next);
  const bool same = std::ranges::max_element(reference) - reference.begin() == std::ranges::max_element(logits) - logits.begin();
  const double nll = q_total - logits[at];
  const double reference_nll = p_total - reference[at];
  return {.positions = 1,
          .nll = nll,
          .reference_nll = reference_nll,
          .squared_change = (nll - reference_nll) * (nll - reference_nll),
          .reference_entropy = entropy,
          .kl = kl,
          .squared_kl = kl * kl,
          .worst_kl = kl,
          .same_top = same ? 1 : 0};
}

}  // namespace braid::perf
