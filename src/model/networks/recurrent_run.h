// LSTM (Hochreiter and Schmidhuber, 1997) and GRU (Cho et al., 2014), with torch's gates, order and biases.
#pragma once

#include "model/networks/layer_run.h"

#include <cstdint>
#include <vector>

namespace braid::model {

// Level by level, in each one direction after the other, rows of the batch in blocks, and of a block some steps of time in a piece.
class RecurrentRun final : public LayerRun {
 public:
  RecurrentRun(const LayerCall& call, NetworkProducts& products);

  Result<void> advance() override;
  bool done() const override;

 private:
  const LayerMatrix& of_inputs() const { return call_.tensors.matrices[static_cast<std::size_t>(number_ * 2)]; }
  const LayerMatrix& of_state() const { return call_.tensors.matrices[static_cast<std::size_t>(number_ * 2 + 1)]; }
  bool is_backward() const { return number_ % call_.layer.directions() == 1; }
  std::int64_t time_of(std::int64_t step) const { return is_backward() ? time_ - 1 - step : step; }
  std::int64_t row_work() const;
  // Of the block's first row; `state` counts from 1, as in the results.
  float* state_at(std::size_t state);

  bool make_all_room();
  void compute(std::int64_t rows, std::int64_t steps);
  void gather(std::int64_t rows, std::int64_t steps);
  void take_step(std::int64_t rows, float* gates, float* out);
  void end_piece(std::int64_t rows, std::int64_t steps);

  const LayerCall call_;
  NetworkProducts& products_;
  const std::int64_t batch_;
  const std::int64_t time_;
  const std::int64_t hidden_;
  Tensor below_;             // the output of the level below; of the first one nothing
  std::int64_t number_ = 0;  // of a direction of a level
  std::int64_t row_ = 0;     // the block's first one
  std::int64_t step_ = 0;
  std::vector<float> x_;      // [steps, rows, inputs]
  std::vector<float> gates_;  // [steps, rows, gates]
  std::vector<float> state_gates_;
};

}  // namespace braid::model
