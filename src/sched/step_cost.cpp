#include "sched/step_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace braid::sched {

namespace {

// Drift from step to step, as a part of the coefficients: of all of them together, and of each.
constexpr double kCommonDrift = 0.08;
constexpr double kOwnDrift = 0.01;

// A first guess, on the careful side: a prompt token takes twice as long as one without context before it after this many.
constexpr double kFirstContext = 4000.0;
constexpr double kFirstDoubt = 4.0;     // of that guess, and of a row's cost by a token's
constexpr double kFirstReading = 20.0;  // tokens that reading a context takes as long as

constexpr double kLeastToken = 0.125;  // of a row's cost: both go through the same products

constexpr double kFirstNoise = 0.1 * 0.1;
constexpr double kLeastNoise = 0.02 * 0.02;
constexpr double kMostNoise = 0.3 * 0.3;
constexpr double kNoiseWeight = 0.1;  // of a new sample
constexpr double kOutlier = 3.0;      // a single surprise counts for no more deviations than so many

}  // namespace

StepCost::Terms StepCost::terms_of(const StepShape& shape) {
  return {1.0,
          static_cast<double>(shape.decode_rows),
          shape.decode_read,
          static_cast<double>(shape.prefill_tokens),
          shape.prefill_read,
          shape.prefill_met};
}

// All of the first step's time is taken to be its prefill's.
void StepCost::begin(const Terms& x, double seconds) {
  const double token = seconds / (x[kToken] + x[kPrefillMet] / kFirstContext);
  const double met = token / kFirstContext;
  cost_ = {0.0, 0.0, 0.0, token, 0.0, met};
  spread_ = {seconds, kFirstDoubt * token, kFirstDoubt * met, token, kFirstReading * met, kFirstDoubt * met};
  for (std::size_t i = 0; i < kTerms; ++i) covariance_[i][i] = spread_[i] * spread_[i];
  relative_noise_ = kFirstNoise;
  is_known_ = true;
}

void StepCost::observe(const StepShape& shape, double seconds) {
  if (seconds <= 0.0) return;
  const Terms x = terms_of(shape);
  if (!is_known_) {
    if (shape.prefill_tokens > 0) begin(x, seconds);
    if (!is_known_) return;
  }
  drift();
  const double expected = std::inner_product(x.begin(), x.end(), cost_.begin(), 0.0);
  const double noise = relative_noise_ * seconds * seconds;
  const double total = variance(x) + noise;
  const double most = kOutlier * std::sqrt(total);
  const bool is_outlier = std::abs(seconds - expected) > most;
  const bool is_accident = !std::exchange(was_outlier_, is_outlier) && is_outlier;
  const double surprise = is_accident ? std::clamp(seconds - expected, -most, most) : seconds - expected;
  Terms gain{};
  for (std::size_t i = 0; i < kTerms; ++i) gain[i] = std::inner_product(x.begin(), x.end(), covariance_[i].begin(), 0.0);
  for (std::size_t i = 0; i < kTerms; ++i) {
    cost_[i] += gain[i] / total * surprise;
    for (std::size_t j = 0; j < kTerms; ++j) covariance_[i][j] -= gain[i] * gain[j] / total;
  }
  bound();
  // Of the surprise, the part that noise explains.
  const double sample = surprise * surprise / total * relative_noise_;
  relative_noise_ = std::clamp(relative_noise_ + (sample - relative_noise_) * kNoiseWeight, kLeastNoise, kMostNoise);
}

// Nothing makes a step shorter. Where a coefficient would, it is 0, and the others are what they probably are then.
void StepCost::bound() {
  for (std::size_t i = 0; i < kTerms; ++i) {
    if (cost_[i] >= 0.0) continue;
    const double excess = cost_[i] / covariance_[i][i];
    for (std::size_t j = 0; j < kTerms; ++j) cost_[j] -= excess * covariance_[i][j];
  }
  for (double& cost : cost_) cost = std::max(0.0, cost);
  cost_[kToken] = std::max(cost_[kToken], kLeastToken * cost_[kRow]);
}

// What no step has told for long is in doubt, but never more than at first.
void StepCost::drift() {
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t j = 0; j < kTerms; ++j) covariance_[i][j] += kCommonDrift * kCommonDrift * cost_[i] * cost_[j];
    covariance_[i][i] += kOwnDrift * kOwnDrift * (cost_[i] * cost_[i] + spread_[i] * spread_[i] * 0.01);
  }
  for (std::size_t i = 0; i < kTerms; ++i) {
    const double excess = std::sqrt(covariance_[i][i]) / spread_[i];
    if (excess <= 1.0) continue;
    for (std::size_t j = 0; j < kTerms; ++j) {
      covariance_[i][j] /= excess;
      covariance_[j][i] /= excess;
    }
  }
}

double StepCost::variance(const Terms& x) const {
  double sum = 0.0;
  for (std::size_t i = 0; i < kTerms; ++i) sum += x[i] * std::inner_product(x.begin(), x.end(), covariance_[i].begin(), 0.0);
  return std::max(0.0, sum);
}

double StepCost::decode_seconds(const StepShape& shape) const {
  return cost_[kStep] + cost_[kRow] * shape.decode_rows + cost_[kDecodeRead] * shape.decode_read;
}

double StepCost::prefill_seconds(const StepShape& shape) const {
  return cost_[kToken] * shape.prefill_tokens + cost_[kPrefillMet] * shape.prefill_met + reading_seconds(shape);
}

double StepCost::reading_seconds(const StepShape& shape) const { return cost_[kPrefillRead] * shape.prefill_read; }

double StepCost::doubt_seconds(const StepShape& shape) const {
  const double seconds = decode_seconds(shape) + prefill_seconds(shape);
  return std::sqrt(variance(terms_of(shape)) + relative_noise_ * seconds * seconds);
}

}  // namespace braid::sched
