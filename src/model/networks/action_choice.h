// Drawing actions from what a policy's network gives.
#pragma once

#include "braid/policy.h"
#include "braid/result.h"
#include "braid/tensor.h"

#include <cstddef>
#include <vector>

namespace braid::model {

// Which outputs of the network choose_actions() takes, in order: parameters, deviations, value, states, those that there are.
std::vector<std::size_t> outputs_of_policy(const PolicyForm& form);

// `outputs` of these; what comes back is Predictor::act()'s. Numbers are float64 in a fixed order, and the draws come from the counter-based
// generator: the same bits on all machines for the same outputs. kInvalidArgument: the seeds do not fit the rows; kInternal: an output is no
// number.
Result<std::vector<Tensor>> choose_actions(const PolicyForm& form, const ActionDraw& draw, std::vector<Tensor> outputs);

}  // namespace braid::model
