// Several residual streams: see StreamsShape and StreamMixShape. The one that a layer computes with is space.residual.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>

namespace braid::model {

// No allocation. Strand only. All are about the first `rows` rows of space.streams and space.residual.
class StreamMix {
 public:
  // All arguments outlive it.
  StreamMix(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team,
            const ProductRunner& products)
      : model_(model), weights_(weights), table_(table), team_(team), products_(products) {}

  // Streams of the embeddings, which are space.residual.
  void begin(std::int64_t rows, Workspace& space) const;
  // Before the index-th layer: its prediction of all streams, of which the active one goes to space.residual.
  void predict(std::int64_t rows, std::size_t index, const Workspace& space) const;
  // Behind it: all are corrected by what it made of space.residual, which becomes the active one.
  void correct(std::int64_t rows, std::size_t index, const Workspace& space) const;
  // Adds space.branch to all but the first one.
  void add_branch(std::int64_t rows, const Workspace& space) const;
  // Their mean, into space.residual.
  void end(std::int64_t rows, Workspace& space) const;

 private:
  float* stream(const Workspace& space, std::int64_t row, std::int32_t index) const {
    return space.streams[row] + std::int64_t{index} * model_.embedding;
  }
  // tanh(router(norm(x)) / embedding), [streams]; `scratch` has room for a row.
  void route(const StreamMixShape& shape, const StreamMixWeights& weights, const NormWeights& norm, const float* x, float* scratch,
             float* routed) const;

  const ModelShape& model_;
  const Weights& weights_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const ProductRunner& products_;
};

}  // namespace braid::model
