#include "model/weights.h"

#include "kernels/packed_layout.h"
#include "model/live_tensors.h"
#include "model/tensor_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace braid::model {
namespace {

// All that follows reads what a shape names with a TensorReader, or tells it by LiveTensors.

// Of newer values it is the one that it was.
void number_norm(auto& reader, NormWeights& norm) {
  if (norm.number == 0) norm.number = reader.number_norm();
}

void read_norm(auto& reader, const NormShape& shape, NormWeights& norm) {
  if (shape.kind == NormShape::Kind::kNone) return;
  number_norm(reader, norm);
  if (shape.rows > 1) {
    reader.table(shape.name + ".weight", shape.width, shape.rows, norm.weight);
  } else {
    reader.vector(shape.bare ? shape.name : shape.name + ".weight", shape.width, shape.weight, norm.weight);
  }
  if (norm.weight.empty()) norm.weight.assign(static_cast<std::size_t>(shape.width), 1.0F);
  if (shape.kind != NormShape::Kind::kLayer) return;
  reader.vector(shape.name + ".bias", shape.width, shape.bias, norm.bias);
  if (norm.bias.empty()) norm.bias.assign(static_cast<std::size_t>(shape.width), 0.0F);
}

void read_linear(auto& reader, const LinearShape& shape, LinearWeights& linear) {
  reader.matrix(shape, linear.matrix);
  reader.bias(shape, linear.bias);
}

void read_feed_forward(auto& reader, const FeedForwardShape& shape, FeedForwardWeights& weights) {
  if (shape.width == 0) return;
  if (shape.gated) read_linear(reader, shape.gate, weights.gate);
  read_linear(reader, shape.up, weights.up);
  read_linear(reader, shape.down, weights.down);
}

void read_experts(auto& reader, const ExpertsShape& shape, ExpertsWeights& weights) {
  const RouterShape& router = shape.router;
  read_linear(reader, router.linear, weights.router);
  reader.vector(router.correction + ".bias", router.experts(), router.corrected, weights.correction);
  if (!shape.shared_gate.empty())
    reader.vector(shape.shared_gate + ".weight", router.linear.inputs, Presence::kRequired, weights.shared_gate);
  if (!router.weights.empty()) reader.vector(router.weights + ".scale", router.experts(), Presence::kRequired, weights.weights);
  read_norm(reader, router.norm, weights.router_norm);
  read_norm(reader, shape.own_norm, weights.own_norm);
  read_norm(reader, shape.post_norm, weights.post_norm);
  read_norm(reader, shape.shared_post_norm, weights.shared_post_norm);
  if (shape.latent() > 0) {
    read_linear(reader, shape.latent_down, weights.latent_down);
    read_linear(reader, shape.latent_up, weights.latent_up);
  }
  weights.each.resize(static_cast<std::size_t>(router.experts()));
  const auto read = [&](const LinearShape& linear, LinearWeights FeedForwardWeights::*part) {
    for (std::size_t i = 0; i < weights.each.size() && !reader.error(); ++i) {
      LinearWeights& own = weights.each[i].*part;
      reader.expert(linear, static_cast<std::int32_t>(i), router.experts(), own.matrix, own.bias);
    }
  };
  if (shape.each.gated) read(shape.each.gate, &FeedForwardWeights::gate);
  read(shape.each.up, &FeedForwardWeights::up);
  read(shape.each.down, &FeedForwardWeights::down);
}

void read_latent(auto& reader, const LatentShape& shape, std::int32_t heads, LatentWeights& weights) {
  if (shape.query_down.outputs > 0) read_linear(reader, shape.query_down, weights.query_down);
  read_norm(reader, shape.query_down_norm, weights.query_down_norm);
  read_norm(reader, shape.norm, weights.norm);
  const auto read = [&](const LinearShape& linear, std::vector<LinearWeights>& out) {
    out.resize(static_cast<std::size_t>(heads));
    for (std::size_t i = 0; i < out.size() && !reader.error(); ++i)
      reader.expert(linear, static_cast<std::int32_t>(i), heads, out[i].matrix, out[i].bias);
  };
  read(shape.key_up, weights.key_up);
  read(shape.value_up, weights.value_up);
}

void read_attention(auto& reader, const AttentionShape& shape, AttentionWeights& attention) {
  read_linear(reader, shape.query, attention.query);
  if (shape.stores()) {
    read_linear(reader, shape.key, attention.key);
    if (shape.latent) {
      read_latent(reader, *shape.latent, shape.heads, attention.latent);
    } else if (!shape.keys_are_values) {
      read_linear(reader, shape.value, attention.value);
    }
    read_norm(reader, shape.key_norm, attention.key_norm);
    read_norm(reader, shape.value_norm, attention.value_norm);
  }
  read_norm(reader, shape.query_norm, attention.query_norm);
  read_linear(reader, shape.output, attention.output);
  if (shape.gate.outputs > 0) read_linear(reader, shape.gate, attention.gate);
  if (!shape.sinks.empty()) reader.vector(shape.sinks + ".weight", shape.heads, Presence::kRequired, attention.sinks);
}

void read_kernel(auto& reader, const std::string& name, std::int64_t width, std::int32_t taps, Presence bias,
                 ConvolutionWeights& convolution) {
  reader.vector(name + ".bias", width, bias, convolution.bias);
  reader.kernel(name + ".weight", width, taps, convolution.taps);
}

void read_convolution(auto& reader, const ShortConvolutionShape& shape, ShortConvolutionWeights& convolution) {
  read_linear(reader, shape.input, convolution.input);
  read_linear(reader, shape.output, convolution.output);
  read_kernel(reader, shape.kernel, shape.width, shape.taps, shape.bias, convolution.convolution);
}

void read_selective(auto& reader, const SelectiveStateShape& shape, SelectiveStateWeights& selective) {
  read_linear(reader, shape.input, selective.input);
  read_linear(reader, shape.output, selective.output);
  read_kernel(reader, shape.kernel, shape.convolved(), shape.taps, shape.bias, selective.convolution);
  reader.values(shape.step + ".bias", shape.heads, selective.step_bias);
  reader.values(shape.decay, shape.heads, selective.decay);
  reader.values(shape.skip, shape.heads, selective.skip);
  if (shape.norm.kind == NormShape::Kind::kNone) return;
  number_norm(reader, selective.norm);
  reader.values(shape.norm.name + ".weight", std::int64_t{shape.norm.rows} * shape.norm.width, selective.norm.weight);
}

void read_delta_rule(auto& reader, const DeltaRuleShape& shape, DeltaRuleWeights& delta) {
  read_linear(reader, shape.input, delta.input);
  read_linear(reader, shape.gate, delta.gate);
  read_linear(reader, shape.beta, delta.beta);
  read_linear(reader, shape.decay, delta.decay);
  read_linear(reader, shape.output, delta.output);
  read_kernel(reader, shape.kernel, shape.convolved(), shape.taps, Presence::kAbsent, delta.convolution);
  reader.values(shape.step + ".bias", shape.heads, delta.step_bias);
  reader.values(shape.rate, shape.heads, delta.rate);
  read_norm(reader, shape.norm, delta.norm);
  const auto dim = static_cast<float>(shape.key_dim);
  delta.query_length.assign(static_cast<std::size_t>(shape.key_dim), 1.0F / dim);
  delta.key_length.assign(static_cast<std::size_t>(shape.key_dim), 1.0F / std::sqrt(dim));
}

void read_mix(auto& reader, const StreamMixShape& shape, std::int32_t streams, StreamMixWeights& mix) {
  read_norm(reader, shape.norm, mix.norm);
  reader.table(shape.router + ".weight", shape.norm.width, streams, mix.router);
  reader.table(shape.predict + ".weight", streams, std::int64_t{streams} * streams, mix.predict);
  reader.table(shape.correct + ".weight", streams, streams, mix.correct);
  if (!shape.scale.empty()) reader.vector(shape.scale + ".weight", shape.norm.width, Presence::kRequired, mix.scale);
}

void read_layer_input(auto& reader, const LayerInputShape& shape, LayerInputWeights& input) {
  read_linear(reader, shape.down, input.down);
  read_linear(reader, shape.up, input.up);
  read_norm(reader, shape.post_norm, input.post_norm);
}

void read_layer(auto& reader, const LayerShape& shape, LayerWeights& layer) {
  read_norm(reader, shape.attention_norm, layer.attention_norm);
  if (shape.convolution) {
    read_convolution(reader, *shape.convolution, layer.convolution);
  } else if (shape.selective) {
    read_selective(reader, *shape.selective, layer.selective);
  } else if (shape.delta) {
    read_delta_rule(reader, *shape.delta, layer.delta);
  }
  if (shape.attends()) read_attention(reader, shape.attention, layer.attention);
  read_norm(reader, shape.attention_post_norm, layer.attention_post_norm);

  read_norm(reader, shape.feed_forward_norm, layer.feed_forward_norm);
  read_feed_forward(reader, shape.feed_forward, layer.feed_forward);
  if (shape.experts) read_experts(reader, *shape.experts, layer.experts);
  read_norm(reader, shape.feed_forward_post_norm, layer.feed_forward_post_norm);
  if (shape.learned_residual) {
    read_linear(reader, shape.learned_residual->down, layer.learned_residual.down);
    read_linear(reader, shape.learned_residual->up, layer.learned_residual.up);
    read_norm(reader, shape.learned_residual->norm, layer.learned_residual.norm);
  }
  if (shape.input) read_layer_input(reader, *shape.input, layer.input);
  if (!shape.output_scale.empty()) reader.vector(shape.output_scale + ".weight", 1, Presence::kRequired, layer.output_scale);
}

void read_layer_inputs(auto& reader, const LayerInputsShape& shape, std::int32_t vocab, LayerInputsWeights& inputs) {
  reader.matrix({.name = shape.table, .inputs = shape.projection.outputs, .outputs = vocab}, inputs.table, ReadBy::kRows);
  read_linear(reader, shape.projection, inputs.projection);
  read_norm(reader, shape.norm, inputs.norm);
}

void read_streams(auto& reader, const ModelShape& model, Weights& weights) {
  const StreamsShape& streams = *model.streams;
  const auto read = [&](const LinearShape& linear, std::vector<LinearWeights>& out) {
    out.resize(static_cast<std::size_t>(streams.count - 1));
    for (std::size_t i = 0; i < out.size() && !reader.error(); ++i)
      reader.expert(linear, static_cast<std::int32_t>(i), streams.count - 1, out[i].matrix, out[i].bias);
  };
  read(streams.begin, weights.stream_begin);
  read(streams.end, weights.stream_end);
  for (std::size_t i = 0; i < model.layers.size() && !reader.error(); ++i)
    read_mix(reader, *model.layers[i].mix, streams.count, weights.layers[i].mix);
}

// For a context of that many positions.
void read_rope_divisors(auto& reader, const RopeParameters& rope, std::int32_t context, std::vector<float>& out,
                        std::vector<float>& stretched) {
  reader.vector(rope.divisors, rope.rotated / 2, rope.divided, out);
  if (rope.stretched_divisors.empty()) return;
  if (context <= rope.original_context) return reader.ignore(rope.stretched_divisors);
  reader.vector(rope.stretched_divisors, rope.rotated / 2, rope.divided, stretched);
}

// Of what other stages compute, matrices are noted and not packed.
void read_model(auto& reader, const ModelShape& model, std::int32_t context, const Stage& stage, Weights& weights) {
  const auto table = [&](const std::string& name, std::int64_t rows) {
    return LinearShape{.name = name, .inputs = model.embedding, .outputs = rows};
  };
  const bool is_tied = !reader.has(model.output.name + ".weight");
  reader.own(stage.is_first() || (is_tied && stage.is_last()));
  if (!model.input.name.empty()) reader.matrix(table(model.input.name, model.vocab), weights.embedding, ReadBy::kRows);
  read_norm(reader, model.input.norm, weights.embedding_norm);
  if (!model.input.positions.empty()) reader.matrix(table(model.input.positions, model.context_length), weights.positions, ReadBy::kRows);
  weights.layers.resize(model.layers.size());
  if (model.layer_inputs) read_layer_inputs(reader, *model.layer_inputs, model.vocab, weights.layer_inputs);
  if (model.streams) read_streams(reader, model, weights);
  for (std::size_t i = 0; i < model.layers.size() && !reader.error(); ++i) {
    reader.own(stage.has(i, model.layers.size()));
    read_layer(reader, model.layers[i], weights.layers[i]);
  }
  reader.own(stage.is_last());
  read_norm(reader, model.output.norm, weights.output_norm);
  const std::int64_t outputs = model.output.rows > 0 ? model.output.rows : model.vocab;
  if (!is_tied) reader.matrix(table(model.output.name, outputs), weights.output);
  reader.vector(model.output.name + ".bias", model.vocab, model.output.bias, weights.output_bias);
  weights.rope_divisors.resize(model.rotary.size());
  weights.stretched_divisors.resize(model.rotary.size());
  for (std::size_t i = 0; i < model.rotary.size(); ++i)
    read_rope_divisors(reader, model.rotary[i], context, weights.rope_divisors[i], weights.stretched_divisors[i]);
  if (model.prediction) {
    const PredictionShape& shape = *model.prediction;
    read_norm(reader, shape.token_norm, weights.prediction.token_norm);
    read_norm(reader, shape.hidden_norm, weights.prediction.hidden_norm);
    read_linear(reader, shape.join, weights.prediction.join);
    read_layer(reader, shape.layer, weights.prediction.layer);
    read_norm(reader, shape.norm, weights.prediction.norm);
  }
  for (const std::string& name : model.unused) reader.ignore(name);
  reader.refuse_others(model.architecture);
}

std::int64_t parameters_of(const files::GgufFile& file) {
  std::uint64_t parameters = 0;  // a hostile file's may go round
  for (const files::GgufTensor& tensor : file.tensors())
    parameters += std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::uint64_t{1}, std::multiplies<>());
  return static_cast<std::int64_t>(parameters);
}

TensorReader reader_of(const files::GgufFile& file, const kernels::KernelTable& table, const Packing& packing, bool partial = false) {
  return {file, table, packing.float_type, packing.rotated, packing.share, partial};
}

// All that is no matrix, and notes the matrices.
std::optional<Error> read_values(TensorReader& reader, const files::GgufFile& file, const ModelShape& model, std::int32_t context,
                                 const Stage& stage, Weights& weights) {
  weights.head = ClassHead::read(file, reader, model.embedding, std::move(weights.head));
  read_model(reader, model, context, stage, weights);
  const auto usable = [](float divisor) { return std::isfinite(divisor) && divisor > 1e-6F; };
  const auto all_usable = [&](const std::vector<float>& divisors) { return std::ranges::all_of(divisors, usable); };
  if (!reader.error() &&
      !(std::ranges::all_of(weights.rope_divisors, all_usable) && std::ranges::all_of(weights.stretched_divisors, all_usable)))
    return Error{ErrorCode::kBadFile, file.name() + ": the rope divisors are not all positive numbers", {}};
  return reader.error();
}

// Fills everything but the matrices' data; `weights` must stay where it is until they are packed.
std::optional<Error> read_checked(TensorReader& reader, const files::GgufFile& file, const ModelShape& model, std::int32_t context,
                                  const Stage& stage, Weights& weights) {
  // A hostile layer count must not make us reserve memory for layers that the file cannot have.
  if (model.layers.size() > file.tensors().size())
    return Error{ErrorCode::kBadFile,
                 fmt::format("{}: {}.block_count is {}, but the file has {} tensors only", file.name(), model.architecture,
                             model.layers.size(), file.tensors().size()),
                 {}};
  if (auto error = read_values(reader, file, model, context, stage, weights)) return error;
  weights.packed_bytes = reader.packed_bytes();
  weights.matrices = reader.matrices() + 1;
  weights.norms = reader.norms();
  weights.parameters = parameters_of(file);
  return reader.error();
}

// Where the file ties them; adapters tell them apart.
void tie_output(Weights& weights) {
  weights.output = weights.embedding;
  weights.output.number = weights.matrices;
  weights.is_tied = true;
}

}  // namespace

void tell_values(const Weights& weights, const ModelShape& model, std::int32_t context, const kernels::KernelTable& table,
                 TensorSink& sink) {
  LiveTensors live(table, weights.is_tied ? std::string() : model.output.name, sink);
  Weights told = weights;  // which stays what it is
  live.head(weights.head);
  read_model(live, model, context, {}, told);
}

bool has_float_weights(const files::GgufFile& file, const Packing& packing) {
  if (packing.float_type && kernels::is_quantized(*packing.float_type)) return false;
  std::size_t floats = 0;
  std::size_t all = 0;
  for (const files::GgufTensor& tensor : file.tensors()) {
    all += tensor.bytes.size();
    if (!kernels::is_quantized(static_cast<kernels::WeightType>(tensor.type))) floats += tensor.bytes.size();
  }
  return floats > all / 2;
}

Result<Weights> load_weights(const files::GgufFile& file, const ModelShape& model, std::int32_t context, const kernels::KernelTable& table,
                             kernels::ThreadTeam& team, const files::Progress& progress, const Packing& packing, files::HugePages pages) {
  TensorReader reader = reader_of(file, table, packing);
  Weights weights;
  if (auto error = read_checked(reader, file, model, context, packing.stage, weights)) return *error;
  auto storage = reader.pack(team, progress, pages);
  if (!storage) return storage.error();
  weights.storage.push_back(std::make_shared<const files::Mapping>(std::move(*storage)));
  if (weights.output.inputs == 0) tie_output(weights);
  return weights;
}

Result<Weights> newer_weights(const Weights& older, const files::GgufFile& file, const ModelShape& model, std::int32_t context,
                              const kernels::KernelTable& table, kernels::ThreadTeam& team, const Packing& packing,
                              files::HugePages pages) {
  TensorReader reader = reader_of(file, table, packing, true);
  Weights weights = older;
  if (auto error = read_values(reader, file, model, context, packing.stage, weights)) return *error;
  weights.storage.clear();
  if (reader.packed_bytes() > 0) {
    auto storage = reader.pack(team, {}, pages);
    if (!storage) return storage.error();
    weights.storage.push_back(std::make_shared<const files::Mapping>(std::move(*storage)));
  }
  if (older.is_tied) tie_output(weights);
  const std::byte* output = reader.begin_of(weights.output, older.is_tied ? ReadBy::kRows : ReadBy::kProducts);
  for (const auto& shared : older.storage) {
    const auto lies_in = [&](const std::byte* data) { return data >= shared->data() && data < shared->data() + shared->size(); };
    if (lies_in(output) || std::ranges::any_of(reader.kept(), lies_in)) weights.storage.push_back(shared);
  }
  return weights;
}

Result<Weights> newer_values(const Weights& older, const files::GgufFile& file, const ModelShape& model, std::int32_t context,
                             const kernels::KernelTable& table, const Packing& packing) {
  TensorReader reader = reader_of(file, table, packing, true);
  Weights weights = older;
  if (auto error = read_values(reader, file, model, context, packing.stage, weights)) return *error;
  return weights;
}

Result<Weights> check_weights(const files::GgufFile& file, const ModelShape& model, std::int32_t context, const kernels::KernelTable& table,
                              const Packing& packing) {
  TensorReader reader = reader_of(file, table, packing);
  Weights weights;
  if (auto error = read_checked(reader, file, model, context, packing.stage, weights)) return *error;
  if (weights.output.inputs == 0) tie_output(weights);
  return weights;
}

}  // namespace braid::model
