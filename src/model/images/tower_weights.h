// The weights of a tower and its connectors, packed for a kernel tier.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/encoders/encoder_tensors.h"
#include "model/encoders/encoder_weights.h"
#include "model/images/tower_shape.h"

#include <array>
#include <cstdint>
#include <vector>

namespace braid::model {

struct ConnectorWeights {
  EncoderNormWeights before, after;
  std::vector<float> less, times;  // [width], or empty
  std::vector<LayerMatrix> dense;
};

struct ResamplerWeights {
  std::vector<float> queries;  // [count, width]
  EncoderNormWeights query_norm, patch_norm, after;
  LayerMatrix joined, query, key, value, out, projection;
};

struct TowerWeights {
  EncoderWeights encoder;  // its positions are those of patches
  LayerMatrix patches;
  std::vector<float> first;  // [width], or empty
  ConnectorWeights connector;
  ConnectorWeights reduction;
  ResamplerWeights resampler;
  std::vector<ConnectorWeights> deep;
  std::vector<float> newline;               // [width of vectors], or empty
  std::array<std::uint64_t, 2> revision{};  // of all values: other weights, other vectors
};

// `tensors` are as stored. kBadFile with the tensor's name: it is missing or has another shape; kUnsupported: its type.
Result<TowerWeights> load_tower_weights(const TowerShape& shape, const EncoderTensors& tensors, const kernels::KernelTable& table,
                                        kernels::WeightType type);

}  // namespace braid::model
