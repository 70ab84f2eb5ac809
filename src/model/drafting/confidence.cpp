#include "model/drafting/confidence.h"

#include <algorithm>
#include <cmath>

namespace braid::model {

std::size_t Confidence::bin_of(float logprob) {
  return static_cast<std::size_t>(std::clamp(-2.0F * logprob, 0.0F, static_cast<float>(kBins - 1)));
}

double Confidence::chance(float logprob) const {
  const std::size_t bin = bin_of(logprob);
  return (right_[bin] + kPrior * std::exp(static_cast<double>(logprob))) / (made_[bin] + kPrior);
}

void Confidence::observe(float logprob, bool is_right) {
  const std::size_t bin = bin_of(logprob);
  constexpr double kKept = 1.0 - 1.0 / kMemory;
  made_[bin] = made_[bin] * kKept + 1.0;
  right_[bin] = right_[bin] * kKept + (is_right ? 1.0 : 0.0);
}

}  // namespace braid::model
