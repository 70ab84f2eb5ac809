// Layers that mix a token with the few before it (LFM2): y = output(C * convolution(B * x)), where B, C and x are parts of input(token).
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

// No allocation. Strand only. A layer's state is that of its convolution (CausalConvolution): B * x of the last tokens.
class ShortConvolution {
 public:
  // All arguments outlive it.
  ShortConvolution(const kernels::KernelTable& table, kernels::ThreadTeam& team, const ProductRunner& products,
                   const ResidualStream& residual)
      : table_(table), team_(team), products_(products), residual_(residual) {}

  // Carries the states of all sequences of the pass on, and leaves C * convolution(B * x) of all tokens in space.attended.
  void mix(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
           Workspace& space) const;

  // Carries the states on behind tokens that were guesses of a pass before, by what has been kept of them.
  void replay(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
              Workspace& space) const;

  // Adds what is there in the first `rows` rows, through the output, to the residual stream.
  void add(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const;

 private:
  // From the products on.
  void carry(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
             Workspace& space) const;

  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
};

}  // namespace braid::model
