// The tensors of a model, checked against its hyper-parameters and packed for one kernel tier.
#pragma once

#include <kernels/kernel_table.h>
#include <kernels/thread_team.h>
#include <model/gguf.h>
#include <model/hyper_parameters.h>
#include <model/mapping.h>
#include <model/progress.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace braid::model {

struct LayerWeights {
  std::vector<float> attention_norm, feed_forward_norm;          // [embedding]
  std::vector<float> query_norm, key_norm;                       // [head_dim], or empty
  std::vector<float> query_bias, key_bias, value_bias;           // or empty
  std::vector<float> attention_output_bias;                      // [embedding], or empty
  kernels::PackedMatrix query, key, value;                       // embedding -> heads * head_dim
  kernels::PackedMatrix attention_output;                        // heads * head_dim -> embedding
  kernels::PackedMatrix gate, up;                                // embedding -> feed_forward
  kernels::PackedMatrix down;                                    // feed_forward -> embedding
};

// Immutable after loading; the matrices point into `storage`.
struct Weights {
  kernels::PackedMatrix embedding;      // [vocab, embedding], read by rows
  kernels::PackedMatrix output;         // the same matrix where the file ties them
  std::vector<float> output_norm;
  std::vector<float> rope_divisors;     // one for each rotated pair, or empty
  std::vector<LayerWeights> layers;
  Mapping storage;
  std::uint64_t packed_bytes = 0;       // of all matrices
  std::int64_t parameters = 0;          // values of all tensors of the file
};

// kBadFile: a tensor is missing or its shape contradicts the hyper-parameters; kUnsupported: its type, or a tensor that this
// architecture does not know. The message names tensor, found and expected. The context to serve picks LongRoPE's divisors. The
// file's pages are released as they are packed; the file is not needed afterwards. F32, F16 and BF16 matrices are packed as `float_type`
// if there is one.
Result<Weights> load_weights(const GgufFile& file, const HyperParameters& model, std::int32_t context,
                             const kernels::KernelTable& table, kernels::ThreadTeam& team, const Progress& progress,
                             std::optional<kernels::WeightType> float_type = {}, HugePages pages = HugePages::kTransparent);

// The same checks without packing: shapes and types are complete, the matrices have no data.
Result<Weights> check_weights(const GgufFile& file, const HyperParameters& model, std::int32_t context,
                              const kernels::KernelTable& table, std::optional<kernels::WeightType> float_type = {});

}  // namespace braid::model
