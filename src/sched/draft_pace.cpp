#include "sched/draft_pace.h"

#include <algorithm>
#include <bit>

namespace braid::sched {
namespace {

constexpr float kOwnMemory = 24.0F;   // guesses of a sequence
constexpr float kAllMemory = 512.0F;  // and of all
constexpr float kShareWeight = 0.2F;  // of a step's guesses in what a sequence's come from
constexpr double kPassWeight = 0.1;   // of a step in what a pass takes
constexpr double kMostSurprise = 2.0;

std::size_t batch_of(std::int32_t rows) {
  return std::min(static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(rows))), std::size_t{16}) - 1;
}

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

// A pass of the model that guesses for all rows of this step; of a batch that it has not had, what one like it took.
double DraftPace::pass_seconds() const {
  const std::size_t wanted = batch_of(rows_);
  for (std::size_t away = 0; away < kBatches; ++away) {
    if (wanted >= away && pass_seconds_[wanted - away] > 0.0) return pass_seconds_[wanted - away];
    if (wanted + away < kBatches && pass_seconds_[wanted + away] > 0.0) return pass_seconds_[wanted + away];
  }
  return 0.0;
}

// Whether one more makes the batch faster, if all its sequences do so: what it brings for the time that it takes is to be more than what the
// step brings as it is, tokens by seconds.
bool DraftPace::pays(double chance, double expected, std::int32_t drafts, double guess_seconds) const {
  if (step_seconds_ == 0.0) return true;  // to be learned
  const double more = row_seconds_ + guess_seconds;
  const double seconds = step_seconds_ / rows_ + more * drafts;
  return chance * seconds > kMargin * more * (1.0 + expected);
}

std::int32_t DraftPace::drafts(DraftHistory& history, std::int32_t most) const {
  most = std::min(most, most_);
  if (most <= 0 || rows_ == 0 || is_full_) return 0;
  if (always_) return most;
  if (spare_[batch_of(rows_)] < 0.0) return 0;
  const double guess_seconds = static_cast<double>(history.by_model) * pass_seconds() / rows_;
  double chance = 1.0;  // that all guesses up to a place are right
  double expected = 0.0;
  std::int32_t count = 0;
  while (count < most) {
    chance *= history.record.chance(static_cast<std::size_t>(count), all_);
    if (!pays(chance, expected, count, guess_seconds)) break;
    expected += chance;
    ++count;
  }
  if (count > 0) {
    history.idle_steps = 0;
    return count;
  }
  if (!pays(1.0, 0.0, 0, guess_seconds) || ++history.idle_steps < history.patience) return 0;
  history.idle_steps = 0;
  history.patience = std::min(history.patience * 2, kMostPatience);
  return std::min(most, kProbe);
}

// A guess that was cut was wrong: it counts among what is learned, not among what was drafted.
void DraftPace::observe(DraftHistory& history, std::int32_t drafted, std::int32_t accepted, std::int32_t by_model, bool is_cut) {
  history.accepted += accepted;
  history.rejected += drafted - accepted;
  const std::int32_t cut = is_cut ? 1 : 0;
  const std::int32_t guessed = drafted + cut;
  if (guessed == 0) return;
  history.has_models = history.has_models || by_model + cut > 0;
  history.by_model += (static_cast<float>(by_model + cut) / static_cast<float>(guessed) - history.by_model) * kShareWeight;
  history.record.observe(guessed, accepted, kOwnMemory);
  all_.observe(guessed, accepted, kAllMemory);
  if (accepted == guessed) history.patience = DraftHistory().patience;
}

// Where nothing was guessed the model has read what it lacked of long texts, which happens once.
void DraftPace::observe(const step::DraftWork& work) {
  if (work.passes == 0 || work.rows == 0) return;
  double& known = pass_seconds_[batch_of(work.rows)];
  const double seconds = work.seconds / work.passes;
  known = known == 0.0 || seconds < known ? seconds : known + (std::min(seconds, kMostSurprise * known) - known) * kPassWeight;
}

// In steps without guesses, so that all batches of a size count alike. One that took far longer than it should was disturbed by something else,
// unless the one before did, too.
void DraftPace::settle(const StepCost& cost, const StepShape& shape, std::int32_t rows, bool has_passes, double tokens, double seconds) {
  if (!cost.is_known() || rows == 0) return;
  StepShape alone = shape;
  alone.decode_rows = rows;
  const double plain = cost.decode_seconds(alone);
  if (plain <= 0.0) return;
  double& spare = spare_[batch_of(rows)];
  if (shape.decode_rows == rows && !has_passes) {
    spare = std::min(spare + kMostLoss, kCredit);
    return;
  }
  const double most = kMostSurprise * cost.decode_seconds(shape);
  const bool is_disturbed = seconds > most;
  const double taken = (is_disturbed && !was_disturbed_ ? most : seconds) / plain;
  was_disturbed_ = is_disturbed;
  spare = std::clamp(spare + tokens / rows - (1.0 - kMostLoss) * taken, -kMostDebt, kCredit);
}

}  // namespace braid::sched
