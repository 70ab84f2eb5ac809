// The weights of an encoder, packed for a kernel tier.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/encoders/encoder_shape.h"
#include "model/encoders/encoder_tensors.h"
#include "model/networks/layer_tensors.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace braid::model {

struct EncoderNormWeights {
  std::vector<float> weight;  // empty: there is no norm
  std::vector<float> bias;    // of one with a mean
  bool rms = false;
  std::uint32_t number = 0;  // among the model's norms, counted from 1

  explicit operator bool() const { return !weight.empty(); }
};

// What a task or an adapter adds to a matrix: up (down x).
struct TaskMatrices {
  LayerMatrix down, up;  // [rank, inputs], [outputs, rank]
};

// Of what goes into a product, and of what comes out.
struct EncoderLimits {
  float input_min = 0.0F, input_max = 0.0F, output_min = 0.0F, output_max = 0.0F;
};

struct EncoderMatrix {
  LayerMatrix base;
  std::vector<TaskMatrices> tasks;  // of EncoderShape::tasks, or empty
  std::optional<EncoderLimits> limits = {};
};

// What a task or an adapter adds to the rows of a table: their own `rank` numbers times directions.
struct TaskRows {
  std::vector<float> rows;        // [count, rank]
  std::vector<float> directions;  // [rank, width]
};

struct EncoderTable {
  std::vector<float> rows;  // [count, width], or empty
  std::vector<TaskRows> tasks;
};

struct EncoderExpertsWeights {
  LayerMatrix router;
  std::vector<LayerMatrix> up, down;  // [experts]
  std::vector<float> bias;            // [width], or empty
};

struct EncoderLayerWeights {
  EncoderNormWeights before_attention, query_norm, key_norm, value_norm, after_attention, joined_attention, rejoined_attention;
  EncoderNormWeights before_feed_forward, after_feed_forward, joined_feed_forward;
  EncoderMatrix query, key, value, out;
  EncoderMatrix gate, up, down;  // gate: without outputs where there is none
  std::optional<EncoderExpertsWeights> experts;
};

struct EncoderHeadWeights {
  LayerMatrix dense;  // without outputs: none
  EncoderNormWeights norm;
  LayerMatrix out;
};

struct EncoderWeights {
  EncoderTable tokens;           // [vocabulary, embedded]
  std::vector<float> positions;  // [rows, embedded], or empty
  EncoderTable types;            // [types, embedded], or empty
  EncoderNormWeights embedding_norm;
  LayerMatrix embedding_projection;
  std::vector<EncoderLayerWeights> layers;
  std::vector<float> distance_bias;  // [buckets, heads], or empty
  EncoderNormWeights final_norm;
  std::vector<LayerMatrix> dense;
  std::optional<EncoderHeadWeights> head;
  std::int64_t parameters = 0;
  std::uint64_t bytes = 0;                // as they are packed
  std::uint32_t matrices = 0, norms = 0;  // numbers given to them (PackedMatrix::number)
};

// `type`: kF32, or kQ8_0 for matrices whose inputs its blocks divide. `modules`: where the tensors of shape.dense lie, one for each; not
// needed afterwards. kBadFile with the tensor's name: it is missing or has another shape; kUnsupported: its type.
Result<EncoderWeights> load_encoder_weights(const EncoderShape& shape, const EncoderTensors& tensors,
                                            const std::vector<const EncoderTensors*>& modules, const kernels::KernelTable& table,
                                            kernels::WeightType type);

}  // namespace braid::model
