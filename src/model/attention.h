// Attention of the rows of a pass over the paged key/value pool.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/latent_attention.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/residual_stream.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"

#include <cstdint>

namespace braid::model {

// No allocation. Strand only.
class Attention {
 public:
  // All arguments outlive it.
  Attention(const ModelShape& model, const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products,
            const ResidualStream& residual)
      : model_(model), table_(table), team_(team), products_(products), residual_(residual),
        latent_(model, table, team, products, residual) {}

  // Queries of all tokens, in space.query; their keys and values go to the pool, to their blocks of `group`.
  void project(const step::Pass& pass, const LayerShape& shape, const LayerWeights& layer, const kernels::KvLayer& pool, std::int32_t group,
               Workspace& space) const;

  // Adds to the first `rows` rows of the residual stream what their queries find in the pool. space.attention_rows, from project(), tells their contexts.
  void attend(std::int64_t rows, const LayerShape& layer_shape, const step::Visibility& visible, const LayerWeights& layer,
              const kernels::KvLayer& pool, Workspace& space) const;

 private:
  Share share() const { return products_.ranks() != nullptr ? products_.ranks()->share() : Share{}; }
  void rotate_and_store(const kernels::AttentionRow& token, std::int64_t row, const AttentionShape& shape, const AttentionWeights& weights,
                        const kernels::KvLayer& pool, Workspace& space) const;
  bool stays_apart(const AttentionShape& shape, const AttentionWeights& weights) const;
  const float* gated(const float* found, const float* gate, std::int64_t width, float* out) const;
  // Fills space.attended.
  void gather(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const;
  void gather_one_by_one(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const;
  std::int64_t pieces_of(std::int64_t count, std::int64_t kv_heads) const;
  // Fills space.tile_begin; returns the number of tiles.
  std::int64_t cut_tiles(std::int64_t rows, std::int64_t kv_heads, Workspace& space) const;
  // Lists the parts of the rows; false when there are too many, or only one each.
  bool split_context(const kernels::AttentionArgs& args, std::int64_t rows, Workspace& space) const;
  void gather_in_parts(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const;

  const ModelShape& model_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
  const LatentAttention latent_;
};

}  // namespace braid::model
