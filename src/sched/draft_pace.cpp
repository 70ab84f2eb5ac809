#include "sched/draft_pace.h"

#include <algorithm>

namespace braid::sched {
namespace {

constexpr float kOwnMemory = 24.0F;   // guesses of a sequence
constexpr float kAllMemory = 512.0F;  // and of all

}  // namespace

void DraftRecord::observe(std::int32_t drafted, std::int32_t accepted, float memory) {
  const std::int32_t tried = std::min(drafted, accepted + 1);  // what comes after a wrong one tells nothing
  for (std::int32_t i = 0; i < tried; ++i) {
    const std::size_t place = std::min(static_cast<std::size_t>(i), kPlaces - 1);
    const float kept = 1.0F - 1.0F / memory;
    tries_[place] = tries_[place] * kept + 1.0F;
    hits_[place] = hits_[place] * kept + (i < accepted ? 1.0F : 0.0F);
  }
}

double DraftRecord::own_chance(std::size_t place) const {
  return (static_cast<double>(hits_[place]) + kFirst * kPrior) / (static_cast<double>(tries_[place]) + kPrior);
}

double DraftRecord::chance(std::size_t place, const DraftRecord& prior) const {
  place = std::min(place, kPlaces - 1);
  return (static_cast<double>(hits_[place]) + prior.own_chance(place) * kPrior) / (static_cast<double>(tries_[place]) + kPrior);
}

void DraftPace::begin_step(const StepCost& cost, const StepShape& rows, bool is_full) {
  rows_ = rows.decode_rows;
  is_full_ = is_full;
  step_seconds_ = cost.is_known() ? cost.decode_seconds(rows) : 0.0;
  StepShape more = rows;
  more.decode_rows += 1;
  row_seconds_ = cost.is_known() ? cost.decode_seconds(more) - step_seconds_ : 0.0;
}

// Whether one more makes the batch faster, if all its sequences do so: what it brings for the time that it takes is to be more than what the
// step brings as it is, tokens by seconds.
bool DraftPace::pays(double chance, double expected, std::int32_t drafts) const {
  if (step_seconds_ == 0.0) return true;  // to be learned
  const double seconds = step_seconds_ / rows_ + row_seconds_ * drafts;
  return chance * seconds > kMargin * row_seconds_ * (1.0 + expected);
}

std::int32_t DraftPace::drafts(DraftHistory& history, std::int32_t most) const {
  most = std::min(most, most_);
  if (most <= 0 || rows_ == 0 || is_full_) return 0;
  double chance = 1.0;  // that all guesses up to a place are right
  double expected = 0.0;
  std::int32_t count = 0;
  while (count < most) {
    chance *= history.record.chance(static_cast<std::size_t>(count), all_);
    if (!pays(chance, expected, count)) break;
    expected += chance;
    ++count;
  }
  if (count > 0) {
    history.idle_steps = 0;
    return count;
  }
  if (++history.idle_steps < history.patience) return 0;
  history.idle_steps = 0;
  history.patience = std::min(history.patience * 2, kMostPatience);
  return std::min(most, kProbe);
}

void DraftPace::observe(DraftHistory& history, std::int32_t drafted, std::int32_t accepted) {
  if (drafted == 0) return;
  history.accepted += accepted;
  history.rejected += drafted - accepted;
  history.record.observe(drafted, accepted, kOwnMemory);
  all_.observe(drafted, accepted, kAllMemory);
  if (accepted == drafted) history.patience = DraftHistory().patience;
}

}  // namespace braid::sched
