// The tensors of a model, checked against its shape and packed for one kernel tier.
#pragma once

#include "files/gguf.h"
#include "files/mapping.h"
#include "files/progress.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/class_head.h"
#include "model/model_shape.h"
#include "model/share.h"
#include "model/stage.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::model {

// How matrices are packed.
struct Packing {
  std::optional<kernels::WeightType> float_type;  // what F32, F16 and BF16 matrices are packed as; their own type otherwise
  // Feed-forward matrices with a scale for 32 inputs are rotated and rounded to 8 bits again (WeightType::kRotated8), with one for 512:
  // faster for many rows, and farther from what the file says (perf/accuracy.md).
  bool rotated = false;
  Share share = {};  // whose outputs are packed
  Stage stage = {};  // whose layers are
};

// Whether most bytes of a model's matrices stay floats when they are packed so.
bool has_float_weights(const files::GgufFile& file, const Packing& packing);

// Empty where the shape has no norm.
struct NormWeights {
  std::vector<float> weight;  // [rows, width]
  std::vector<float> bias;    // [width] of kLayer
  std::uint32_t number = 0;   // of the model's norms, counted from 1
};

struct LinearWeights {
  kernels::PackedMatrix matrix;
  std::vector<float> bias;  // [outputs], or empty
};

struct LatentWeights {
  LinearWeights query_down;  // or none
  NormWeights query_down_norm, norm;
  std::vector<LinearWeights> key_up, value_up;  // [heads]
};

// Of a causal convolution of each channel.
struct ConvolutionWeights {
  std::vector<float> taps;  // [taps, width]
  std::vector<float> bias;  // [width], or empty
};

struct AttentionWeights {
  LinearWeights query, key, value, output;
  LinearWeights gate;  // or none
  NormWeights query_norm, key_norm, value_norm;
  std::vector<float> sinks;  // [heads], or empty
  LatentWeights latent;      // then there is no value
};

struct ShortConvolutionWeights {
  LinearWeights input, output;
  ConvolutionWeights convolution;
};

struct SelectiveStateWeights {
  LinearWeights input, output;
  ConvolutionWeights convolution;
  std::vector<float> step_bias, decay, skip;  // [heads]: of dt, A and D
  NormWeights norm;
};

struct DeltaRuleWeights {
  LinearWeights input, gate, beta, decay, output;
  ConvolutionWeights convolution;
  std::vector<float> step_bias, rate;           // [heads]
  std::vector<float> query_length, key_length;  // [key_dim]: what heads of a length of sqrt(key_dim) are multiplied by
  NormWeights norm;
};

struct FeedForwardWeights {
  LinearWeights gate;  // or none
  LinearWeights up, down;
};

struct ExpertsWeights {
  LinearWeights router;
  std::vector<float> correction;         // [experts], or empty
  std::vector<FeedForwardWeights> each;  // [experts]
  std::vector<float> shared_gate;        // [embedding], or empty
  LinearWeights latent_down, latent_up;  // or none
  NormWeights router_norm, own_norm, post_norm, shared_post_norm;
  std::vector<float> weights;  // [experts], or empty
};

struct LayerInputWeights {
  LinearWeights down, up;
  NormWeights post_norm;
};

struct LayerInputsWeights {
  kernels::PackedMatrix table;  // [vocab, layers * width], read by rows
  LinearWeights projection;
  NormWeights norm;
};

struct LearnedResidualWeights {
  LinearWeights down, up;
  NormWeights norm;
};

struct StreamMixWeights {
  NormWeights norm;
  std::vector<float> router;   // [streams, embedding]
  std::vector<float> predict;  // [streams, streams, streams]
  std::vector<float> correct;  // [streams, streams]
  std::vector<float> scale;    // [embedding], or empty
};

struct LayerWeights {
  NormWeights attention_norm;
  AttentionWeights attention;  // one of these
  ShortConvolutionWeights convolution;
  SelectiveStateWeights selective;
  DeltaRuleWeights delta;
  NormWeights attention_post_norm;
  NormWeights feed_forward_norm;
  FeedForwardWeights feed_forward;
  ExpertsWeights experts;
  NormWeights feed_forward_post_norm;
  LearnedResidualWeights learned_residual;  // or none, like all that follow
  StreamMixWeights mix;
  LayerInputWeights input;
  std::vector<float> output_scale;  // [1]
};

struct PredictionWeights {
  NormWeights token_norm, hidden_norm;
  LinearWeights join;  // or none: there is no such head
  LayerWeights layer;
  NormWeights norm;
};

// Immutable after loading; the matrices point into `storage`.
struct Weights {
  kernels::PackedMatrix embedding;  // [vocab, embedding], read by rows
  kernels::PackedMatrix positions;  // [context_length, embedding], read by rows, or none
  NormWeights embedding_norm;
  LayerInputsWeights layer_inputs;                      // or none
  std::vector<LinearWeights> stream_begin, stream_end;  // [streams - 1], or none
  kernels::PackedMatrix output;                         // the same matrix where the file ties them
  bool is_tied = false;
  std::vector<float> output_bias;  // [vocab], or empty
  NormWeights output_norm;
  std::vector<std::vector<float>> rope_divisors;       // of each rotary table one for each rotated pair, or empty
  std::vector<std::vector<float>> stretched_divisors;  // likewise, of long sequences, where the context that is served has such
  std::vector<LayerWeights> layers;
  PredictionWeights prediction;
  ClassHead head;
  std::vector<std::shared_ptr<const files::Mapping>> storage;  // one, and what is shared with older revisions
  std::uint64_t packed_bytes = 0;                              // of all matrices
  std::uint32_t matrices = 0;                                  // the largest PackedMatrix::number
  std::uint32_t norms = 0;                                     // the largest NormWeights::number
  std::int64_t parameters = 0;                                 // values of all tensors of the file
};

// kBadFile: a tensor is missing or its shape contradicts the model's; kUnsupported: its type, or a tensor that this
// architecture does not know. The message names tensor, found and expected. Only a context
// to serve that is longer than the original one has LongRoPE's stretched divisors. The
// file's pages are dropped as they are packed; the file is not needed afterwards.
Result<Weights> load_weights(const files::GgufFile& file, const ModelShape& model, std::int32_t context, const kernels::KernelTable& table,
                             kernels::ThreadTeam& team, const files::Progress& progress, const Packing& packing = {},
                             files::HugePages pages = files::HugePages::kTransparent);

// `older` with the tensors that the file has in the place of its own, as they would be loaded; it has some of them, of the types and shapes
// that they were loaded with. What is not there is shared with `older`.
Result<Weights> newer_weights(const Weights& older, const files::GgufFile& file, const ModelShape& model, std::int32_t context,
                              const kernels::KernelTable& table, kernels::ThreadTeam& team, const Packing& packing = {},
                              files::HugePages pages = files::HugePages::kTransparent);

// The same without packing, for a process that has no matrices: of what is none, such as a head for classes.
Result<Weights> newer_values(const Weights& older, const files::GgufFile& file, const ModelShape& model, std::int32_t context,
                             const kernels::KernelTable& table, const Packing& packing = {});

// Takes the values of tensors, one after the other.
class TensorSink {
 public:
  virtual ~TensorSink() = default;
  virtual void begin(const std::string& name, std::vector<std::int64_t> shape) = 0;  // rows first
  virtual void add(std::span<const float> values) = 0;                               // some more of them
  virtual void end() = 0;
};

// All values of the weights as they are computed with, by the names of a file; what is one of several matrices in a tensor, or some of its
// rows, by that name with its place in brackets. Any thread.
void tell_values(const Weights& weights, const ModelShape& model, std::int32_t context, const kernels::KernelTable& table,
                 TensorSink& sink);

// The same checks without packing: shapes and types are complete, the matrices have no data.
Result<Weights> check_weights(const files::GgufFile& file, const ModelShape& model, std::int32_t context, const kernels::KernelTable& table,
                              const Packing& packing = {});

}  // namespace braid::model
