// The shapes of all values of a small network, as far as they follow before a request is there.
#pragma once

#include "model/networks/layer_tensors.h"
#include "model/networks/network_shape.h"

#include <vector>

namespace braid::model {

struct ValueShape {
  ElementType type = ElementType::kFloat32;
  SymbolicShape shape;
};

// By value id. kBadFile: a layer cannot take what it is given; the path is the layer's.
Result<std::vector<ValueShape>> infer_shapes(const NetworkShape& network, const std::vector<LayerTensors>& tensors);

}  // namespace braid::model
