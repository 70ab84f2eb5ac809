// The norms of a model.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"
#include "model/weights.h"

namespace braid::model {

// One row of shape.width values; `out` may be `x`. The shape is none of kNone.
inline void normalise(const kernels::KernelTable& table, const NormShape& shape, const NormWeights& norm, const float* x, float* out) {
  if (shape.kind == NormShape::Kind::kLayer) {
    table.layer_norm(x, norm.weight.data(), norm.bias.data(), shape.width, shape.epsilon, out);
  } else {
    table.rms_norm(x, norm.weight.data(), shape.width, shape.epsilon, out);
  }
}

}  // namespace braid::model
