// What surrounds attention to latents (DeepSeek 2024): queries are multiplied by what would make keys of latents, and what they find by what
// would make values of them, always, so that prefill and decode agree in every bit.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/residual_stream.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"

#include <cstdint>
#include <vector>

namespace braid::model {

// No allocation. Strand only.
class LatentAttention {
 public:
  // All arguments outlive it.
  LatentAttention(const ModelShape& model, const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products,
                  const ResidualStream& residual)
      : model_(model), table_(table), team_(team), products_(products), residual_(residual) {}

  // Queries of all tokens, in space.query; their latents go to the pool, to their blocks of `group`.
  void project(const step::Pass& pass, const LayerShape& shape, const LayerWeights& layer, const kernels::KvLayer& pool, std::int32_t group,
               Workspace& space) const;

  // The values of what `rows` queries have found (space.attended), in space.latent_values.
  void expand(std::int64_t rows, const AttentionShape& shape, const LatentWeights& weights, Workspace& space) const;

 private:
  // One token's norms and rotations; its latent goes to the pool.
  void finish(const kernels::AttentionRow& token, std::int64_t row, const AttentionShape& shape, const LatentWeights& weights,
              const kernels::KvLayer& pool, Workspace& space) const;
  // A matrix for each head, with what rows' adapters add: from its part of a row of `in`, from one head to the next in_step values, to its
  // part of one of `out`.
  void multiply_heads(std::int64_t rows, const std::vector<LinearWeights>& heads, const Rows& in, std::int64_t in_step, const Rows& out,
                      std::int64_t out_step, Workspace& space) const;

  const ModelShape& model_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
};

}  // namespace braid::model
