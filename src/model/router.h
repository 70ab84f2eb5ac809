// The choice of experts: float32 chains and comparisons in a fixed order, the same on every tier.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"

#include <cstdint>
#include <span>

namespace braid::model {

// One of a row's experts, and the weight of what it gives.
struct ExpertChoice {
  std::int32_t expert = 0;
  float weight = 0.0F;
};

// Fills shape.chosen choices, the best one first, of one row's scores [experts], which are overwritten. correction: [experts], or empty.
// scratch: twice as many floats as experts. A row with a score that is no number gets the first experts with weights that are none.
void choose_experts(const kernels::KernelTable& table, const RouterShape& shape, std::span<float> scores, std::span<const float> correction,
                    std::span<float> scratch, std::span<ExpertChoice> choices) noexcept;

}  // namespace braid::model
