// The gated delta rule (Yang et al. 2024; Qwen3-Next, Qwen3.5): each head carries a matrix on that decays, and in which what a key stands for
// is replaced. After the convolution, with keys and queries of length 1 and queries divided by sqrt(key_dim), for each token:
//   change = beta (value - decay key h),  h = decay h + key change^T,  y = query h,
// and output(norm(y) * silu(gate)) is added to the residual stream.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/kv_arena.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/residual_stream.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

// No allocation. Strand only. A layer's state is the convolution's and, for each head, h [key_dim, value_dim]. Heads are independent and
// take one token after the other, so that bits do not depend on slices or on who computes which.
class DeltaRule {
 public:
  // All arguments outlive it.
  DeltaRule(const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products, const ResidualStream& residual)
      : table_(table), team_(team), products_(products), residual_(residual) {}

  // Carries the states of all sequences of the pass on, and leaves norm(y) * silu(gate) of all tokens in space.attended.
  void mix(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
           Workspace& space) const;

  // Carries the states on behind tokens that were guesses of a pass before, by what has been kept of them.
  void replay(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
              Workspace& space) const;

  // Adds what is there in the first `rows` rows, through the output, to the residual stream.
  void add(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const;

 private:
  void project(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const;
  // One token's queries and keys to their lengths.
  void scale(std::int64_t row, const DeltaRuleShape& shape, const DeltaRuleWeights& weights, Workspace& space) const;
  // From the products on, to what all heads give.
  void advance(const step::Pass& pass, std::size_t index, const DeltaRuleShape& shape, const DeltaRuleWeights& weights, const KvArena& pool,
               Workspace& space) const;
  // Guesses are carried on from a copy of the head's state in `ahead`.
  void advance_head(const step::Pass& pass, const step::PassSequence& sequence, std::size_t index, std::int32_t head,
                    const DeltaRuleShape& shape, const DeltaRuleWeights& weights, const KvArena& pool, Workspace& space,
                    float* ahead) const;
  // What one token's heads give, after norm and gate.
  void finish(std::int64_t row, const DeltaRuleShape& shape, const DeltaRuleWeights& weights, Workspace& space) const;

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
};

}  // namespace braid::model
