// What the layers of a small network compute. Shapes have been checked (value_shapes.h) but for what only a request tells.
#pragma once

#include "braid/result.h"
#include "braid/tensor.h"
#include "model/networks/layer_run.h"
#include "model/networks/network_products.h"

#include <cstdint>

namespace braid::model {

struct PartRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// A layer as parts, which see nothing of each other: rows, values, or windows of a convolution.
struct LayerParts {
  TensorShape shape;  // of the output
  std::int64_t count = 0;
  std::int64_t of_piece = 1;
  // Writes these parts of the output.
  Result<void> (*compute)(const LayerCall& call, NetworkProducts& products, PartRange parts, Tensor& out) = nullptr;
};

Result<LayerParts> linear_parts(const LayerCall& call);
Result<LayerParts> conv1d_parts(const LayerCall& call);     // kInvalidArgument: its input is too short
Result<LayerParts> embedding_parts(const LayerCall& call);  // compute(): kInvalidArgument: an index beyond the table
Result<LayerParts> layer_norm_parts(const LayerCall& call);
Result<LayerParts> activation_parts(const LayerCall& call);  // but softmax and its logarithm
Result<LayerParts> add_parts(const LayerCall& call);         // kInvalidArgument: shapes differ in this request
Result<LayerParts> concat_parts(const LayerCall& call);      // kInvalidArgument: likewise
Result<LayerParts> last_parts(const LayerCall& call);
Result<LayerParts> parameter_parts(const LayerCall& call);  // for each row of its input the same

// The layer's axis of a tensor of so many dimensions.
inline std::size_t axis_of(const NetworkLayer& layer, const TensorShape& shape) {
  return static_cast<std::size_t>(layer.axis < 0 ? layer.axis + static_cast<std::int64_t>(shape.size()) : layer.axis);
}

}  // namespace braid::model
