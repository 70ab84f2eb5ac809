#include "net/training/lora_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace braid::net::training {
namespace {

constexpr double kFirstMomentDecay = 0.9;
constexpr double kSecondMomentDecay = 0.999;

// Spreads what is counted over all numbers (Steele et al. 2014, "Fast splittable pseudorandom number generators").
std::uint64_t spread(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

FitFigures mean_of(const FitFigures& sums, std::size_t count) {
  if (count == 0) return {};
  return {sums.loss / static_cast<double>(count), sums.accuracy / static_cast<double>(count)};
}

}  // namespace

LoraFit::LoraFit(std::shared_ptr<TunableLayer> layer, std::vector<Example> examples, FitOptions options, const LoraOptions& lora,
                 std::optional<LoraState> begin)
    : layer_(std::move(layer)), examples_(std::move(examples)), options_(std::move(options)), lora_(lora),
      learnt_count_(examples_.size() - options_.held_out), own_(layer_->parameter_count(), 0.0), gradient_(own_.size(), 0.0) {
  if (begin) {
    state_ = std::move(*begin);
  } else {
    state_.parameters = layer_->first_parameters(lora_.seed);
    state_.first.assign(own_.size(), 0.0F);
    state_.second.assign(own_.size(), 0.0F);
    if (!examples_.front().rejected && !layer_->has_own_head()) {
      double sum = 0.0;
      for (std::size_t i = 0; i < learnt_count_; ++i) sum += static_cast<double>(examples_[i].score);
      state_.parameters.back() = static_cast<float>(sum / static_cast<double>(learnt_count_));
    }
  }
  begin_epoch();
}

void LoraFit::begin_epoch() {
  order_.resize(examples_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  const std::uint64_t key = spread(lora_.seed ^ spread(static_cast<std::uint64_t>(state_.epoch)));
  std::ranges::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(learnt_count_), {},
                    [&](std::size_t i) { return std::pair(spread(key ^ i), i); });
  turn_ = 0;
  sums_ = {};
  held_out_sums_ = {};
}

bool LoraFit::advance(std::size_t work) {
  while (work > 0) {
    work -= std::min(work, layer_->advance(work));
    if (layer_->is_over() && !follow()) return true;
  }
  return false;
}

// What was begun last is over, and the next is begun. False: that was the epoch.
bool LoraFit::follow() {
  const Example& example = examples_[order_[turn_]];
  if (phase_ == Phase::kBegin) {
    side_ = 0;
    begin_score(example.text);
    return true;
  }
  if (phase_ == Phase::kScored) {
    scores_[side_] = layer_->score();
    phase_ = Phase::kSloped;
    if (is_learnt()) {
      layer_->begin_slope(side_ == 0 ? 1.0 : -1.0, own_);
      return true;
    }
  }
  if (example.rejected && side_ == 0) {
    side_ = 1;
    begin_score(*example.rejected);
    return true;
  }
  settle(example);
  phase_ = Phase::kBegin;
  if (++turn_ < order_.size()) return true;
  ++state_.epoch;
  learnt_ = mean_of(sums_, learnt_count_);
  held_out_ = mean_of(held_out_sums_, options_.held_out);
  begin_epoch();
  return false;
}

void LoraFit::begin_score(std::size_t text) {
  layer_->begin_score(text, state_.parameters);
  phase_ = Phase::kScored;
}

void LoraFit::settle(const Example& example) {
  const double lead = scores_[0] - scores_[1];
  const Loss loss = example.rejected ? loss_of_lead(lead) : loss_of_error(scores_[0] - static_cast<double>(example.score));
  FitFigures& sums = is_learnt() ? sums_ : held_out_sums_;
  sums.loss += loss.value;
  if (example.rejected) sums.accuracy += lead > 0.0 ? 1.0 : 0.0;
  if (is_learnt()) learn(loss);
}

void LoraFit::learn(const Loss& loss) {
  for (std::size_t i = 0; i < own_.size(); ++i) gradient_[i] += loss.slope * std::exchange(own_[i], 0.0);
  if ((turn_ + 1) % lora_.batch == 0 || turn_ + 1 == learnt_count_) step();
}

// Adam (Kingma and Ba 2015), with a rate that falls to nothing along the epochs.
void LoraFit::step() {
  const auto count = static_cast<double>(turn_ % lora_.batch + 1);
  const double left = 1.0 - static_cast<double>(state_.epoch) / static_cast<double>(options_.epochs);
  const auto steps = static_cast<double>(++state_.steps);
  const double first_share = 1.0 - std::pow(kFirstMomentDecay, steps);
  const double second_share = 1.0 - std::pow(kSecondMomentDecay, steps);
  const std::size_t bias = gradient_.size() - 1;
  for (std::size_t i = 0; i < gradient_.size(); ++i) {
    const auto parameter = static_cast<double>(state_.parameters[i]);
    const double slope = std::exchange(gradient_[i], 0.0) / count + (i < bias ? options_.l2 * parameter : 0.0);
    const double first = kFirstMomentDecay * static_cast<double>(state_.first[i]) + (1.0 - kFirstMomentDecay) * slope;
    const double second = kSecondMomentDecay * static_cast<double>(state_.second[i]) + (1.0 - kSecondMomentDecay) * slope * slope;
    state_.first[i] = static_cast<float>(first);
    state_.second[i] = static_cast<float>(second);
    const double move = options_.learning_rate * left * (first / first_share) / (std::sqrt(second / second_share) + 1e-8);
    state_.parameters[i] = static_cast<float>(parameter - move);
  }
}

}  // namespace braid::net::training
