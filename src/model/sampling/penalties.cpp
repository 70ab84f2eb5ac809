#include "model/sampling/penalties.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace braid::model {
namespace {

struct Sum {
  double value = 0.0;
  double count = 0.0;
};

// Of term(x) over the finite logits, in the order of four lanes.
template <class Term>
Sum sum_finite(std::span<const float> logits, Term&& term) {
  std::array<Sum, 4> lanes{};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool finite = std::fabs(logits[i]) < kInfinity;
    lanes[i % 4].value += finite ? term(static_cast<double>(logits[i])) : 0.0;
    lanes[i % 4].count += finite ? 1.0 : 0.0;
  }
  return {(lanes[0].value + lanes[2].value) + (lanes[1].value + lanes[3].value),
          (lanes[0].count + lanes[2].count) + (lanes[1].count + lanes[3].count)};
}

}  // namespace

void add_bias(std::span<const LogitBias> bias, std::span<float> logits) {
  for (const LogitBias& entry : bias) logits[static_cast<std::size_t>(entry.token)] += entry.bias;
}

void apply_penalties(const SamplingParams& sampling, std::span<const TokenHistory::Count> counts, std::span<float> logits) {
  for (const TokenHistory::Count& count : counts) {
    float& logit = logits[static_cast<std::size_t>(count.token)];
    if (count.in_window > 0) logit = logit > 0.0F ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
    if (count.in_answer > 0) logit -= static_cast<float>(count.in_answer) * sampling.frequency_penalty + sampling.presence_penalty;
  }
}

void keep_top_n_sigma(float n, float largest, std::span<float> logits) {
  const Sum all = sum_finite(logits, [](double x) { return x; });
  const double mean = all.value / all.count;
  const Sum squares = sum_finite(logits, [mean](double x) { return (x - mean) * (x - mean); });
  const double least = static_cast<double>(largest) - static_cast<double>(n) * std::sqrt(squares.value / all.count);
  for (float& logit : logits)
    if (static_cast<double>(logit) < least) logit = -kInfinity;
}

}  // namespace braid::model
