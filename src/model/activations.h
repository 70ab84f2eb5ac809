// What stands between the products of a network. Activations that no tier has a kernel of its own for are plain loops, the same bits on all
// of them.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"

namespace braid::model {

float sigmoid(float x) noexcept;

// out = shape.activation(x), [shape.width]; not kClampedSwish.
void apply(const FeedForwardShape& shape, const float* x, float* out) noexcept;

// out = shape.activation(gate) * up, or shape.activation(up) where there is no gate, [shape.width]. `out` overlaps neither.
void activate(const kernels::KernelTable& table, const FeedForwardShape& shape, const float* gate, const float* up, float* out) noexcept;

}  // namespace braid::model
