// What layers get of a token beside the residual stream: see LayerInputsShape and LayerInputShape.
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

namespace braid::model {

// No allocation. Strand only.
class LayerInputs {
 public:
  // All arguments outlive it.
  LayerInputs(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team,
              const ProductRunner& products, const ResidualStream& residual)
      : model_(model), weights_(weights), table_(table), team_(team), products_(products), residual_(residual) {}

  // Those of all tokens, whose embeddings are the residual stream, into space.layer_inputs. Tokens whose vectors are given have those of
  // token 0.
  void begin(const step::Pass& pass, Workspace& space) const;

  // What the index-th layer makes of its inputs and of the first `rows` rows of space.residual is added to these.
  void add(std::int64_t rows, std::size_t index, Workspace& space) const;

  // The same into space.branch, of rows that are multiplied by `scale` [embedding] first, where it is not empty.
  void compute(std::int64_t rows, std::size_t index, const std::vector<float>& scale, Workspace& space) const;

 private:
  // Fills space.narrow.
  void narrow(std::int64_t rows, std::size_t index, const std::vector<float>& scale, Workspace& space) const;

  const ModelShape& model_;
  const Weights& weights_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
  const ResidualStream& residual_;
};

}  // namespace braid::model
