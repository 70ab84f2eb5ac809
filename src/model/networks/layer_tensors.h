// The tensors of one layer of a small network, named as torch's state_dict names them, packed for a kernel tier.
#pragma once

#include "files/mapping.h"
#include "files/safetensors.h"
#include "kernels/kernel_table.h"
#include "model/networks/network_shape.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::model {

struct LayerMatrix {
  kernels::PackedMatrix matrix;
  std::vector<float> bias;  // [outputs], or empty
  files::Mapping storage;
};

// [outputs, inputs] for the tier, in `type` where its blocks divide the inputs, in float32 otherwise. `what` is for the message.
Result<LayerMatrix> pack_floats(const kernels::KernelTable& table, kernels::WeightType type, const float* values, std::int64_t outputs,
                                std::int64_t inputs, std::string_view what);

struct LayerTensors {
  // kLinear: one. kConv1d: for each group [outputs, inputs * kernel]. kLstm and kGru: for each level and direction that of the inputs,
  // then that of the state, whose outputs are the gates in torch's order.
  std::vector<LayerMatrix> matrices;
  std::int64_t kernel = 1;   // kConv1d
  std::vector<float> scale;  // kLayerNorm: [width], or empty
  std::vector<float> shift;  // kLayerNorm: [width], or empty
  std::vector<float> table;  // kEmbedding: [entries, width]; kParameter: [width]
  std::int64_t entries = 0;  // kEmbedding
  std::int64_t width = 0;    // kEmbedding and kParameter

  // kLstm and kGru: of one direction.
  std::int64_t hidden() const { return matrices.at(1).matrix.inputs; }
};

// kBadFile: a tensor is missing or has another shape than its layer takes; kUnsupported: its type. `path` is the layer's in the config.
Result<LayerTensors> load_layer_tensors(const NetworkLayer& layer, const files::SafeTensors& file, const kernels::KernelTable& table,
                                        kernels::WeightType type, const std::string& path);

}  // namespace braid::model
