// The branch of a layer that works on each token alone.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/experts.h"
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
  FeedForward(const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products, const ResidualStream& residual)
      : table_(table), team_(team), products_(products), residual_(residual), experts_(table, team, products) {}

  // Adds a layer's branch to `rows` rows of the residual stream.
  void run(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const;

 private:
  void run_with_experts(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const;
  // Fills space.normed.
  void read_rows(std::int64_t rows, const NormShape& shape, const NormWeights& norm, Workspace& space) const;
  void norm_branch(std::int64_t rows, const NormShape& shape, const NormWeights& norm, Workspace& space) const;
  // Adds to space.branch, which is that of the layer's own network, a branch of experts that has its own norms.
  void add_branch_of_experts(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights, Workspace& space) const;
  // The layer's own network beside experts, of space.normed; or zeros. Into space.branch.
  void share(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const;
  // Fills space.gate and, where that is not fused, space.up. input: as in ProductRunner::run.
  template <class Input>
  void project(std::int64_t rows, const FeedForwardShape& shape, const FeedForwardWeights& weights, Workspace& space, Input&& input) const;
  // One row between the two products, in `scratch` or where it lies.
  const float* activated(std::int64_t row, bool fused, const FeedForwardShape& shape, const Workspace& space, float* scratch) const;

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
  const Experts experts_;
};

}  // namespace braid::model
