// A head of the EAGLE-3 kind guesses for the model that it was trained for.
#pragma once

#include "kernels/thread_team.h"
#include "model/drafting/head_drafter.h"
#include "model/families/eagle3.h"

#include <memory>
#include <span>
#include <vector>

namespace braid::model {

// It reads, for each position, the residual stream behind some of the model's layers and the token that came next; further on its own
// residual stream in the place of these.
class EagleDrafter final : public HeadDrafter {
 public:
  // What it computes with: the head's own weights, and the model's embedding where it has none. Of weights without data, to measure with.
  static HeadModel head_of(const EagleHead& eagle, const ModelShape& model, const Weights& own, const Weights& weights);

  // `own`: the head's, of the same tier.
  static Result<std::unique_ptr<EagleDrafter>> create(const EagleHead& eagle, const ModelShape& model, const Weights& own,
                                                      const Weights& weights, const HeadRoom& room);

 private:
  EagleDrafter(const EagleHead& eagle, HeadModel head, const HeadRoom& room, Parts parts);

  void make_rows(std::span<const Input> inputs, bool are_heard, std::vector<float>& rows) override;
  void read_hidden(std::int64_t picked, float* out) const override;

  const PredictionShape prediction_;
  const bool norms_residual_;
};

}  // namespace braid::model
