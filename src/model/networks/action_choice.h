// Drawing actions from what a policy's network gives.
#pragma once

#include "braid/policy.h"
#include "braid/result.h"
#include "braid/tensor.h"

#include <cstddef>
#include <span>
#include <vector>

namespace braid::model {

// Which outputs of the network choose_actions() takes, in order: parameters, deviations, value, states, those that there are.
std::vector<std::size_t> outputs_of_policy(const PolicyForm& form);

// The draws of one request, some rows in a piece, so that many of them keep nobody waiting. Numbers are float64 in a fixed order, and the
// draws come from the counter-based generator: the same bits on all machines for the same outputs.
class ActionRun {
 public:
  // `outputs` of outputs_of_policy(). `form` outlives it.
  ActionRun(const PolicyForm& form, ActionDraw draw, std::vector<Tensor> outputs);

  bool done() const { return next_row_ == rows_; }
  // kInvalidArgument: the seeds do not fit the rows, or an output is no number. It is over then.
  Result<void> advance();
  std::vector<Tensor> take();  // Predictor::act()'s answer, after done()

 private:
  const Tensor& parameters() const { return outputs_.front(); }
  std::span<const float> parameters_of(std::size_t row) const;
  bool is_gaussian() const;
  std::size_t actions_of_row() const;
  double deviation(std::size_t row, std::size_t i) const;
  // Write the row's actions; their log-probability.
  double draw_choices(std::size_t row);
  double draw_numbers(std::size_t row);

  const PolicyForm& form_;
  const ActionDraw draw_;
  std::vector<Tensor> outputs_;
  const std::size_t width_;
  const std::size_t rows_;
  Tensor actions_;
  Tensor log_probabilities_;
  std::size_t next_row_ = 0;
};

// All of them at once.
Result<std::vector<Tensor>> choose_actions(const PolicyForm& form, const ActionDraw& draw, std::vector<Tensor> outputs);

}  // namespace braid::model
