#include "net/training/lora_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace braid::net::training {
namespace {

constexpr double kFirstMomentDecay = 0.9;
constexpr double kSecondMomentDecay = 0.999;
constexpr std::size_t kWorkOfStep = 16;  // multiplications that a parameter's takes, about

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
      learnt_count_(examples_.size() - options_.held_out), own_(layer_->parameter_count(), 0.0), gradient_(own_.size(), 0.0),
      moved_(own_.size()) {
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
    work -= std::min(work, moved_ < own_.size() ? move(work) : layer_->advance(work));
    if (moved_ == own_.size() && layer_->is_over() && !follow()) return true;
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
  if (phase_ == Phase::kSloped && example.rejected && side_ == 0) {
    side_ = 1;
    begin_score(*example.rejected);
    return true;
  }
  if (phase_ == Phase::kSloped) {
    settle(example);
    phase_ = Phase::kSettled;
    return true;
  }
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
  if (is_learnt()) begin_move(loss.slope);
}

void LoraFit::begin_move(double slope) {
  const bool ends = (turn_ + 1) % lora_.batch == 0 || turn_ + 1 == learnt_count_;
  batch_ = ends ? turn_ % lora_.batch + 1 : 0;
  slope_ = slope;
  moved_ = 0;
  if (!ends) return;
  const auto steps = static_cast<double>(++state_.steps);
  rate_ = options_.learning_rate * (1.0 - static_cast<double>(state_.epoch) / static_cast<double>(options_.epochs));
  first_share_ = 1.0 - std::pow(kFirstMomentDecay, steps);
  second_share_ = 1.0 - std::pow(kSecondMomentDecay, steps);
}

// What the example says of some more parameters, and, where it ends a batch, what the batch makes of them.
std::size_t LoraFit::move(std::size_t work) {
  const std::size_t each = batch_ > 0 ? kWorkOfStep : 1;
  const std::size_t end = std::min(own_.size(), moved_ + work / each + 1);
  const std::size_t count = end - moved_;
  for (; moved_ < end; ++moved_) {
    gradient_[moved_] += slope_ * std::exchange(own_[moved_], 0.0);
    if (batch_ > 0) step(moved_);
  }
  return count * each;
}

// Adam (Kingma and Ba 2015), with a rate that falls to nothing along the epochs.
void LoraFit::step(std::size_t parameter) {
  float& value = state_.parameters[parameter];
  float& first = state_.first[parameter];
  float& second = state_.second[parameter];
  const bool is_bias = parameter + 1 == gradient_.size();
  const double slope =
      std::exchange(gradient_[parameter], 0.0) / static_cast<double>(batch_) + (is_bias ? 0.0 : options_.l2 * static_cast<double>(value));
  const double own_first = kFirstMomentDecay * static_cast<double>(first) + (1.0 - kFirstMomentDecay) * slope;
  const double own_second = kSecondMomentDecay * static_cast<double>(second) + (1.0 - kSecondMomentDecay) * slope * slope;
  first = static_cast<float>(own_first);
  second = static_cast<float>(own_second);
  const double move = rate_ * (own_first / first_share_) / (std::sqrt(own_second / second_share_) + 1e-8);
  value = static_cast<float>(static_cast<double>(value) - move);
}

}  // namespace braid::net::training
