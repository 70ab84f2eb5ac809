// How many tokens are worth guessing for a sequence: by how often guesses have been right, and by what a row more takes and the guess itself.
#pragma once

#include "sched/step_cost.h"
#include "step/step.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid::sched {

// How guesses have turned out lately, by their place among those made at once. A plain value; older ones count less and less.
class DraftRecord {
 public:
  static constexpr std::size_t kPlaces = 8;  // the last stands for all further ones

  // Of `drafted` guesses the first `accepted` were right. `memory`: about how many are remembered at a place.
  void observe(std::int32_t drafted, std::int32_t accepted, float memory);

  // The chance that the guess at a place is right if those before it are. `prior` counts as kPrior observations of its own.
  double chance(std::size_t place, const DraftRecord& prior) const;

 private:
  static constexpr float kPrior = 4.0F;
  static constexpr double kFirst = 0.6;  // before anything is known

  double own_chance(std::size_t place) const;

  std::array<float, kPlaces> tries_{};
  std::array<float, kPlaces> hits_{};
};

// What a sequence remembers of its guesses. Loop only.
struct DraftHistory {
  DraftRecord record;
  std::int32_t accepted = 0;  // in all
  std::int32_t rejected = 0;
  float by_model = 0.5F;        // share of its guesses that a model made
  bool has_models = false;      // any of them: before it guesses a model has read the text
  std::int32_t idle_steps = 0;  // since something was guessed, while it does not pay
  std::int32_t patience = 16;   // so many of them until it is tried again
};

// Loop only. No clock of its own.
class DraftPace {
 public:
  // With `always` all are worth it, whatever they take.
  explicit DraftPace(std::int32_t most, bool always = false) : most_(most), always_(always) { spare_.fill(kCredit); }

  // Before the rows of a step, one of each sequence, which are `rows` without guesses. With `is_full` nothing is guessed: others wait for
  // the machine.
  void begin_step(const StepCost& cost, const StepShape& rows, bool is_full);

  // At most `most` for a sequence of this step. Counts its steps in which none are worth it.
  std::int32_t drafts(DraftHistory& history, std::int32_t most) const;

  // Of `drafted` tokens a model had guessed `by_model`. With `is_cut` it had guessed one more behind them that its constraint ruled out.
  void observe(DraftHistory& history, std::int32_t drafted, std::int32_t accepted, std::int32_t by_model, bool is_cut = false);
  void observe(const step::DraftWork& work);

  // A step of `rows` rows, and what was guessed for them, gave `tokens` and took `seconds`, with those of models that guess but not what these
  // read before. What it lost by the time that the tokens would have taken without guesses is held against what others of its size have gained:
  // where they lose more than a hundredth of the time, nothing is guessed until that is made good. With `has_passes` a model guessed in it,
  // whether anything of that was verified or not.
  void settle(const StepCost& cost, const StepShape& shape, std::int32_t rows, bool has_passes, double tokens, double seconds);

 private:
  static constexpr double kMargin = 1.1;     // by which a guess must be worth more than it takes
  static constexpr std::int32_t kProbe = 2;  // guessed when it is tried again
  static constexpr std::int32_t kMostPatience = 512;

  static constexpr std::size_t kBatches = 16;  // of 1, 2 to 3, 4 to 7 and so on rows
  static constexpr double kMostLoss = 0.01;    // of the time
  static constexpr double kCredit = 4.0;       // steps that may be lost before anything is gained
  static constexpr double kMostDebt = 64.0;    // steps; more is forgotten

  bool pays(double chance, double expected, std::int32_t drafts, double guess_seconds) const;
  double pass_seconds() const;

  std::int32_t most_;
  bool always_;
  DraftRecord all_;
  double step_seconds_ = 0.0;  // of this step without guesses; 0: not known
  double row_seconds_ = 0.0;   // that a row more takes
  std::int32_t rows_ = 0;      // of this step
  bool is_full_ = false;
  std::array<double, kBatches> pass_seconds_{};  // of a model that guesses, by the size of its batch; 0: not known
  std::array<double, kBatches> spare_;           // likewise, in steps: what guesses may still lose
  bool was_disturbed_ = false;                   // the last step with guesses took far longer than it should
};

}  // namespace braid::sched
