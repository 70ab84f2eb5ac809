// Where one product gives what stands between two.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>

namespace braid::model {

// Whether one product of the gate gives silu(gate) * up for so many rows. Where adapters add to both it does not; the others' bits are the same.
inline bool fuses_swiglu(const kernels::KernelTable& table, std::int64_t rows, const FeedForwardShape& shape,
                         const FeedForwardWeights& weights, const Workspace& space) {
  return !space.adapted.any() && shape.gated && shape.activation == Activation::kSilu &&
         weights.gate.matrix.type == weights.up.matrix.type && weights.gate.bias.empty() && weights.up.bias.empty() &&
         table.fuses_swiglu != nullptr && table.fuses_swiglu(weights.gate.matrix.type, rows);
}

}  // namespace braid::model
