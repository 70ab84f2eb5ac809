// Activations that no tier has a kernel of its own for: plain loops, the same bits on all of them.
#pragma once

#include "model/model_shape.h"

namespace braid::model {

// out = shape.activation(x), [shape.width].
void apply(const FeedForwardShape& shape, const float* x, float* out) noexcept;

}  // namespace braid::model
