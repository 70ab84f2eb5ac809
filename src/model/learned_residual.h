// The path around attention of a layer that has one: see LearnedResidualShape.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/residual_stream.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>

namespace braid::model {

// No allocation. Strand only.
class LearnedResidual {
 public:
  // All arguments outlive it.
  LearnedResidual(const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products,
                  const ResidualStream& residual)
      : table_(table), team_(team), products_(products), residual_(residual) {}

  // Of the first `rows` rows of the residual stream as attention reads them, into space.learned_residual.
  void compute(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const;

  // Joins these with the rows of the stream, to which attention has been added.
  void join(std::int64_t rows, const Workspace& space) const;

 private:
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
};

}  // namespace braid::model
