// The branch of a layer that works on each token alone.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/residual_stream.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>

namespace braid::model {

// No allocation. Strand only.
class FeedForward {
 public:
  // All arguments outlive it.
  FeedForward(const kernels::KernelTable& table, const ProductRunner& products, const ResidualStream& residual)
      : table_(table), products_(products), residual_(residual) {}

  // Adds a layer's branch to `rows` rows of the residual stream.
  void run(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const;

 private:
  // Whether one product of the gate gives silu(gate) * up.
  bool fuses(std::int64_t rows, const FeedForwardShape& shape, const FeedForwardWeights& weights) const;

  // One row between the two products.
  void activate(const FeedForwardShape& shape, const float* gate, const float* up, float* out) const;

  const kernels::KernelTable& table_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
};

}  // namespace braid::model
