// The residual stream: how a branch reads it, and how what a branch gives is added to it.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"
#include "model/norm.h"
#include "model/product_runner.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>

namespace braid::model {

// No allocation. Strand only.
class ResidualStream {
 public:
  // Both outlive the stream.
  ResidualStream(const kernels::KernelTable& table, const ProductRunner& products) : table_(table), products_(products) {}

  // Row `row` after a norm, in `out`, which is returned.
  const float* read(std::int64_t row, const NormShape& shape, const NormWeights& norm, const Workspace& space, float* out) const {
    normalise(table_, shape, norm, space.residual.fetch(row, shape.width), out);
    return out;
  }

  // Adds a branch's last product, whose rows are those of ProductRunner::run.
  template <class Input>
  void add(const LinearWeights& last, std::int64_t rows, Workspace& space, Input&& input) const {
    const Product product{&last.matrix, space.residual, true};
    products_.run({&product, 1}, rows, space, input);
    products_.add_bias(last, space.residual, rows);
  }

 private:
  const kernels::KernelTable& table_;
  const ProductRunner& products_;
};

}  // namespace braid::model
