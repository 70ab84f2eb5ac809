// LoRA beside a model's last layer and its head, fitted to what texts are worth.
#pragma once

#include "braid/tunable_layer.h"
#include "net/training/head_fit.h"
#include "net/training/loss.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace braid::net::training {

struct LoraOptions {
  LoraShape shape;
  std::size_t batch = 16;  // examples that a step learns from
  std::uint64_t seed = 0;  // of the first matrices, and of the examples' order in each epoch
};

// All that a fit goes on from, between two epochs.
struct LoraState {
  std::int64_t epoch = 0;
  std::int64_t steps = 0;
  std::vector<float> parameters;
  std::vector<float> first, second;  // Adam's moments
};

// Parameters and moments are float32 between two steps, so that a fit that goes on from its state gives the bits of one that was never left.
// One thread at a time.
class LoraFit {
 public:
  // The layer has all texts, and nothing of it is under way. examples: as HeadFit's; of `options` what a head begins with does not count.
  LoraFit(std::shared_ptr<TunableLayer> layer, std::vector<Example> examples, FitOptions options, const LoraOptions& lora,
          std::optional<LoraState> begin = {});

  std::int32_t epoch() const { return static_cast<std::int32_t>(state_.epoch); }
  bool done() const { return state_.epoch >= options_.epochs; }
  // About so many multiplications, and no further than to the end of an epoch; then that is told.
  bool advance(std::size_t work);

  // Between two epochs.
  const LoraState& state() const { return state_; }
  // Of the last epoch: what was learnt from as it was met, the others at its end.
  FitFigures learnt() const { return learnt_; }
  FitFigures held_out() const { return held_out_; }

 private:
  enum class Phase : std::uint8_t { kBegin, kScored, kSloped, kSettled };

  void begin_epoch();
  bool follow();
  void begin_score(std::size_t text);
  void settle(const Example& example);
  void begin_move(double slope);
  std::size_t move(std::size_t work);
  void step(std::size_t parameter);
  bool is_learnt() const { return turn_ < learnt_count_; }

  const std::shared_ptr<TunableLayer> layer_;
  const std::vector<Example> examples_;
  const FitOptions options_;
  const LoraOptions lora_;
  const std::size_t learnt_count_;
  LoraState state_;
  FitFigures learnt_, held_out_;

  std::vector<std::size_t> order_;  // of the examples in this epoch: those that are learnt from, then the others
  std::size_t turn_ = 0;            // the one at hand
  Phase phase_ = Phase::kBegin;     // what of it is over
  std::size_t side_ = 0;            // 1: of a preference what was rejected
  std::array<double, 2> scores_{};
  std::vector<double> own_;       // [parameters]: the example's slopes of its score, or of its lead
  std::vector<double> gradient_;  // [parameters]: of the batch
  FitFigures sums_, held_out_sums_;
  std::size_t moved_ = 0;  // parameters that have what the example says of them; all: nothing is left to do
  double slope_ = 0.0;     // of the example's loss
  double rate_ = 0.0;      // of that step, and what Adam's moments are divided by
  double first_share_ = 1.0;
  double second_share_ = 1.0;
  std::size_t batch_ = 0;  // examples of the step that this one ends; 0: it ends none
};

}  // namespace braid::net::training
