// What of a model's last layer stays as it is while LoRA is fitted to it: its weights as float32, the norm behind it, and the model's head.
#pragma once

#include "braid/result.h"
#include "kernels/kernel_table.h"
#include "model/decoder.h"
#include "model/model_shape.h"
#include "model/rope.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::model {

struct FrozenLinear {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::vector<float> weight;  // [outputs, inputs]
  std::vector<float> bias;    // [outputs], or empty

  const float* row(std::int64_t output) const { return weight.data() + output * inputs; }
};

// x / sqrt(mean(x^2) + epsilon) * weight
struct FrozenNorm {
  std::vector<float> weight;  // of as many values as are normalised; empty: there is no norm
  double epsilon = 0.0;
};

struct FrozenLayer {
  std::int32_t index = 0;
  std::int64_t width = 0;  // of the residual stream
  std::int32_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t window = 0;  // tokens that the last one sees, itself among them; 0: all
  double score_scale = 1.0;
  double residual_scale = 1.0;
  bool tanh_gelu = false;  // otherwise SiLU
  FrozenNorm attention_norm, query_norm, key_norm, feed_forward_norm, output_norm;
  FrozenLinear query, key, value, output, gate, up, down;
  std::int32_t rotated = 0;  // values of a head
  bool interleaved = false;
  std::optional<RopeTable> rope;
  std::vector<float> head;  // [width]; empty: the model has none of one class
  float head_bias = 0.0F;

  std::uint64_t bytes() const;
};

// FrozenLayer::bytes(), of a model that has such a layer.
std::uint64_t frozen_bytes(const ModelShape& model);

// kUnsupported: what of the model is otherwise than in the Llama family.
Result<void> check_last_layer(const ModelShape& model);

// Any thread. Errors as those of check_last_layer().
Result<FrozenLayer> freeze_last_layer(const ModelShape& model, const Decoder& decoder, const kernels::KernelTable& table);

}  // namespace braid::model
