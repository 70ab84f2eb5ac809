// A model's own head for tokens further on (PredictionShape) guesses for it.
#pragma once

#include "model/drafting/head_drafter.h"

#include <memory>
#include <span>
#include <vector>

namespace braid::model {

// It reads, for each position, the hidden state there, behind the model's last norm, and the token that came next.
class MtpDrafter final : public HeadDrafter {
 public:
  // Of a model that has such a head, in shape and weights; what it computes with. The matrices are the model's.
  static HeadModel head_of(const ModelShape& model, const Weights& weights);

  // `model` outlives it, as do those whom `room` names.
  static Result<std::unique_ptr<MtpDrafter>> create(const ModelShape& model, const Weights& weights, const HeadRoom& room);

 private:
  MtpDrafter(const ModelShape& model, HeadModel head, const HeadRoom& room, Parts parts);

  void make_rows(std::span<const Input> inputs, bool are_heard, std::vector<float>& rows) override;
  void read_hidden(std::int64_t picked, float* out) const override { transformer_.hidden(picked, space_, out); }

  const PredictionShape& prediction_;
  std::vector<float> joined_;  // [rows, 2 embedding], what rows are made of
};

}  // namespace braid::model
