#include "model/weights.h"

#include "model/tensor_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace braid::model {
namespace {

void read_layer(TensorReader& reader, const HyperParameters& model, std::int32_t index, LayerWeights& layer) {
  const auto name = [index](std::string_view part) { return fmt::format("blk.{}.{}", index, part); };
  const Family& family = *model.family;
  const Presence head_norm = family.query_key_norm ? Presence::kRequired : Presence::kAbsent;

  reader.vector(name("attn_norm.weight"), model.embedding, Presence::kRequired, layer.attention_norm);
  reader.matrix(name("attn_q.weight"), model.embedding, model.query_width(), layer.query);
  reader.matrix(name("attn_k.weight"), model.embedding, model.kv_width(), layer.key);
  reader.matrix(name("attn_v.weight"), model.embedding, model.kv_width(), layer.value);
  reader.vector(name("attn_q.bias"), model.query_width(), family.qkv_bias, layer.query_bias);
  reader.vector(name("attn_k.bias"), model.kv_width(), family.qkv_bias, layer.key_bias);
  reader.vector(name("attn_v.bias"), model.kv_width(), family.qkv_bias, layer.value_bias);
  reader.vector(name("attn_q_norm.weight"), model.head_dim, head_norm, layer.query_norm);
  reader.vector(name("attn_k_norm.weight"), model.head_dim, head_norm, layer.key_norm);
  reader.matrix(name("attn_output.weight"), model.query_width(), model.embedding, layer.attention_output);
  reader.vector(name("attn_output.bias"), model.embedding, family.output_bias, layer.attention_output_bias);

  reader.vector(name("ffn_norm.weight"), model.embedding, Presence::kRequired, layer.feed_forward_norm);
  reader.matrix(name("ffn_gate.weight"), model.embedding, model.feed_forward, layer.gate, Rotation::kAllowed);
  reader.matrix(name("ffn_up.weight"), model.embedding, model.feed_forward, layer.up, Rotation::kAllowed);
  reader.matrix(name("ffn_down.weight"), model.feed_forward, model.embedding, layer.down, Rotation::kAllowed);
  reader.ignore(name("attn_rot_embd.weight"));  // files of 2023 carry this unused table
}

// Llama 3's divisors, or those of LongRoPE for a short or a stretched context.
void read_rope_divisors(TensorReader& reader, const HyperParameters& model, std::int32_t context, std::vector<float>& out) {
  const RopeParameters& rope = model.rope;
  const bool longrope = rope.scaling == RopeScaling::kLongrope;
  const bool stretched = context > rope.original_context;
  const std::string used = !longrope ? "rope_freqs.weight" : stretched ? "rope_factors_long.weight" : "rope_factors_short.weight";
  if (longrope) reader.ignore(stretched ? "rope_factors_short.weight" : "rope_factors_long.weight");
  reader.vector(used, rope.rotated / 2, longrope ? Presence::kRequired : Presence::kOptional, out);
}

void read_model(TensorReader& reader, const HyperParameters& model, std::int32_t context, Weights& weights) {
  reader.matrix("token_embd.weight", model.embedding, model.vocab, weights.embedding);
  weights.layers.resize(static_cast<std::size_t>(model.layers));
  for (std::int32_t i = 0; i < model.layers && !reader.error(); ++i)
    read_layer(reader, model, i, weights.layers[static_cast<std::size_t>(i)]);
  reader.vector("output_norm.weight", model.embedding, Presence::kRequired, weights.output_norm);
  if (reader.has("output.weight")) reader.matrix("output.weight", model.embedding, model.vocab, weights.output);
  read_rope_divisors(reader, model, context, weights.rope_divisors);
  reader.refuse_others(model.family->architecture);
}

std::int64_t parameters_of(const files::GgufFile& file) {
  std::uint64_t parameters = 0;  // a hostile file's may go round
  for (const files::GgufTensor& tensor : file.tensors())
    parameters += std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::uint64_t{1}, std::multiplies<>());
  return static_cast<std::int64_t>(parameters);
}

TensorReader reader_of(const files::GgufFile& file, const kernels::KernelTable& table, const Packing& packing) {
  return {file, table, packing.float_type, parameters_of(file) >= packing.rotated_from};
}

// Fills everything but the matrices' data; `weights` must stay where it is until they are packed.
std::optional<Error> read_checked(TensorReader& reader, const files::GgufFile& file, const HyperParameters& model, std::int32_t context,
                                  Weights& weights) {
  // A hostile layer count must not make us reserve memory for layers that the file cannot have.
  if (static_cast<std::size_t>(model.layers) > file.tensors().size())
    return Error{ErrorCode::kBadFile,
                 fmt::format("{}: {}.block_count is {}, but the file has {} tensors only", file.name(), model.family->architecture,
                             model.layers, file.tensors().size()),
                 {}};
  read_model(reader, model, context, weights);
  const auto usable = [](float divisor) { return std::isfinite(divisor) && divisor > 1e-6F; };
  if (!reader.error() && !std::ranges::all_of(weights.rope_divisors, usable))
    return Error{ErrorCode::kBadFile, file.name() + ": the rope divisors are not all positive numbers", {}};
  weights.packed_bytes = reader.packed_bytes();
  weights.parameters = parameters_of(file);
  return reader.error();
}

}  // namespace

Result<Weights> load_weights(const files::GgufFile& file, const HyperParameters& model, std::int32_t context,
                             const kernels::KernelTable& table, kernels::ThreadTeam& team, const files::Progress& progress,
                             const Packing& packing, files::HugePages pages) {
  TensorReader reader = reader_of(file, table, packing);
  Weights weights;
  if (auto error = read_checked(reader, file, model, context, weights)) return *error;
  auto storage = reader.pack(team, progress, pages);
  if (!storage) return storage.error();
  weights.storage = std::move(*storage);
  if (weights.output.data == nullptr) weights.output = weights.embedding;
  return weights;
}

Result<Weights> check_weights(const files::GgufFile& file, const HyperParameters& model, std::int32_t context,
                              const kernels::KernelTable& table, const Packing& packing) {
  TensorReader reader = reader_of(file, table, packing);
  Weights weights;
  if (auto error = read_checked(reader, file, model, context, weights)) return *error;
  if (weights.output.inputs == 0) weights.output = weights.embedding;
  return weights;
}

}  // namespace braid::model
