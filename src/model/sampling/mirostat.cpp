#include "model/sampling/mirostat.h"

#include "model/deterministic_math.h"

#include <algorithm>

namespace braid::model {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

}  // namespace

std::size_t mirostat_top_k(std::span<const double> best, float mu, std::int32_t vocab) {
  if (best.size() < 2) return 1;
  double products = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i + 1 < best.size(); ++i) {
    const double rank_step = fixed_log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += rank_step * fixed_log(best[i] / best[i + 1]);
    squares += rank_step * rank_step;
  }
  const auto all = static_cast<double>(vocab);
  const double slope = std::max(products / squares, 1e-9);  // equal weights have none
  const double epsilon = slope - 1.0;
  // epsilon / (1 - vocab^-epsilon), whose limit at 0 is 1 / ln(vocab).
  const double ratio = epsilon == 0.0 ? 1.0 / fixed_log(all) : epsilon / (1.0 - fixed_exp(-epsilon * fixed_log(all)));
  const double k = fixed_exp((static_cast<double>(mu) * kLn2 + fixed_log(ratio)) / slope);
  return static_cast<std::size_t>(std::clamp(k, 1.0, all));
}

double mirostat_least_probability(float mu) { return fixed_exp(-static_cast<double>(mu) * kLn2); }

float mirostat_next(const SamplingParams& sampling, float mu, double probability) {
  const double surprise = -fixed_log(probability) / kLn2;
  return static_cast<float>(static_cast<double>(mu) -
                            static_cast<double>(sampling.mirostat_eta) * (surprise - static_cast<double>(sampling.mirostat_tau)));
}

}  // namespace braid::model
