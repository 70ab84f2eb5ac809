// All matrices and norms of a model that adapters may change.
#pragma once

#include "kernels/kernel_table.h"
#include "model/model_shape.h"
#include "model/weights.h"

#include <cstdint>
#include <vector>

namespace braid::model {

struct ModelMatrix {
  // kEmbedding: read by rows, [vocab, embedding].
  enum class Role { kProduct, kEmbedding, kOutput };
  Role role = Role::kProduct;
  LinearShape shape;         // whose tensor it is, or a part of
  std::int32_t expert = -1;  // which of a tensor's matrices; -1: it has no others
  const kernels::PackedMatrix* packed = nullptr;
  const std::vector<float>* bias = nullptr;  // [outputs], or empty; null: none
};

struct ModelNorm {
  const NormShape* shape = nullptr;
  const NormWeights* weights = nullptr;
};

// Both outlive what is returned. Not among them: products that are no matrices.
std::vector<ModelMatrix> matrices_of(const ModelShape& model, const Weights& weights);
// Likewise.
std::vector<ModelNorm> norms_of(const ModelShape& model, const Weights& weights);

}  // namespace braid::model
