#include "model/training/frozen_layer.h"

#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace braid::model {
namespace {

bool is_rms(const NormShape& norm, std::int64_t width) {
  return norm.kind == NormShape::Kind::kRms && norm.width == width && norm.rows == 1;
}
bool is_none(const NormShape& norm) { return norm.kind == NormShape::Kind::kNone; }

bool is_whole(const LinearShape& linear) { return linear.outputs > 0 && linear.stored_outputs == 0 && linear.run == 0; }

// What its attention has that is not computed here; empty: nothing.
std::string_view oddity_of(const AttentionShape& attention) {
  if (attention.latent) return "attends to latents";
  if (!attention.stores() || attention.keys_are_values) return "takes keys or values from elsewhere";
  if (attention.gate.outputs > 0) return "gates its attention";
  if (attention.clip > 0.0F || attention.score_cap > 0.0F) return "clips its attention";
  if (!attention.slopes.empty() || !attention.sinks.empty()) return "has slopes or sinks";
  if (attention.growth > 0.0F) return "scales queries by their position";
  if (!is_none(attention.value_norm) || attention.norm_after_rotation) return "normalises values, or keys behind their rotation";
  for (const NormShape* norm : {&attention.query_norm, &attention.key_norm})
    if (!is_none(*norm) && !is_rms(*norm, attention.head_dim)) return "normalises several heads together";
  for (const LinearShape* linear : {&attention.query, &attention.key, &attention.value, &attention.output})
    if (!is_whole(*linear)) return "has several matrices of its attention in one tensor";
  return {};
}

std::string_view oddity_of(const FeedForwardShape& feed_forward) {
  if (!feed_forward.gated || feed_forward.cut) return "has a feed-forward network of another kind";
  if (feed_forward.activation != Activation::kSilu && feed_forward.activation != Activation::kGeluTanh) return "has another activation";
  for (const LinearShape* linear : {&feed_forward.gate, &feed_forward.up, &feed_forward.down})
    if (!is_whole(*linear)) return "has several matrices of its feed-forward network in one tensor";
  return {};
}

std::string_view oddity_of(const ModelShape& model) {
  if (model.layers.empty()) return "has no layers";
  const LayerShape& layer = model.layers.back();
  if (layer.carries_state() || !layer.attends()) return "carries a state on";
  if (layer.experts || layer.feed_forward.width == 0) return "has experts";
  if (layer.parallel || layer.reads_beside || layer.learned_residual || layer.mix || layer.input || !layer.output_scale.empty() ||
      model.streams)
    return "has other branches";
  if (!is_none(layer.attention_post_norm) || !is_none(layer.feed_forward_post_norm)) return "has norms behind its branches";
  for (const NormShape* norm : {&layer.attention_norm, &layer.feed_forward_norm, &model.output.norm})
    if (!is_rms(*norm, model.embedding)) return "has norms of another kind";
  if (model.kv_limit > 0) return "is served with a limited context (--kv-limit)";
  if (model.stretch_beyond() > 0) return "turns by other angles in long texts";
  if (const std::string_view oddity = oddity_of(layer.attention); !oddity.empty()) return oddity;
  return oddity_of(layer.feed_forward);
}

FrozenNorm frozen(const NormShape& shape, const NormWeights& norm) {
  if (is_none(shape)) return {};
  FrozenNorm frozen{norm.weight, static_cast<double>(shape.epsilon)};
  if (frozen.weight.empty()) frozen.weight.assign(static_cast<std::size_t>(shape.width), 1.0F);
  return frozen;
}

FrozenLinear frozen(const LinearWeights& linear, const kernels::KernelTable& table) {
  FrozenLinear frozen{.inputs = linear.matrix.inputs, .outputs = linear.matrix.outputs, .weight = {}, .bias = linear.bias};
  frozen.weight.resize(static_cast<std::size_t>(frozen.inputs * frozen.outputs));
  for (std::int64_t row = 0; row < frozen.outputs; ++row) table.unpack_row(linear.matrix, row, frozen.weight.data() + row * frozen.inputs);
  return frozen;
}

}  // namespace

std::uint64_t FrozenLayer::bytes() const {
  std::uint64_t values = 0;
  for (const FrozenLinear* linear : {&query, &key, &value, &output, &gate, &up, &down}) values += linear->weight.size();
  return values * sizeof(float);
}

std::uint64_t frozen_bytes(const ModelShape& model) {
  const AttentionShape& attention = model.layers.back().attention;
  const FeedForwardShape& feed_forward = model.layers.back().feed_forward;
  std::int64_t values = 0;
  for (const LinearShape* linear :
       {&attention.query, &attention.key, &attention.value, &attention.output, &feed_forward.gate, &feed_forward.up, &feed_forward.down})
    values += linear->inputs * linear->outputs;
  return static_cast<std::uint64_t>(values) * sizeof(float);
}

Result<void> check_last_layer(const ModelShape& model) {
  const std::string_view oddity = oddity_of(model);
  if (oddity.empty()) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("the last layer of this model ({}) {}: LoRA is trained on decoders with RMS norms before attention and a gated "
                           "feed-forward network, such as Llama, Mistral, Qwen2 and Qwen3",
                           model.architecture, oddity),
               {}};
}

Result<FrozenLayer> freeze_last_layer(const ModelShape& model, const Decoder& decoder, const kernels::KernelTable& table) {
  if (const Result<void> fits = check_last_layer(model); !fits) return fits.error();
  const LayerShape& shape = model.layers.back();
  const LayerWeights& weights = decoder.weights->layers.back();
  const AttentionShape& attention = shape.attention;
  FrozenLayer layer{.index = static_cast<std::int32_t>(model.layers.size()) - 1,
                    .width = model.embedding,
                    .heads = attention.heads,
                    .kv_heads = attention.kv_heads,
                    .head_dim = attention.head_dim,
                    .window = attention.window,
                    .score_scale = static_cast<double>(attention.scale),
                    .residual_scale = static_cast<double>(shape.residual_scale),
                    .tanh_gelu = shape.feed_forward.activation == Activation::kGeluTanh,
                    .attention_norm = frozen(shape.attention_norm, weights.attention_norm),
                    .query_norm = frozen(attention.query_norm, weights.attention.query_norm),
                    .key_norm = frozen(attention.key_norm, weights.attention.key_norm),
                    .feed_forward_norm = frozen(shape.feed_forward_norm, weights.feed_forward_norm),
                    .output_norm = frozen(model.output.norm, decoder.weights->output_norm),
                    .query = frozen(weights.attention.query, table),
                    .key = frozen(weights.attention.key, table),
                    .value = frozen(weights.attention.value, table),
                    .output = frozen(weights.attention.output, table),
                    .gate = frozen(weights.feed_forward.gate, table),
                    .up = frozen(weights.feed_forward.up, table),
                    .down = frozen(weights.feed_forward.down, table),
                    .rope = {},
                    .head = {}};
  if (attention.rotary != kNoRotary) {
    const auto index = static_cast<std::size_t>(attention.rotary);
    layer.rotated = model.rotary[index].rotated;
    layer.interleaved = model.rotary[index].interleaved;
    layer.rope = decoder.ropes[index];
  }
  if (decoder.head.classes() == 1) {
    layer.head.assign(decoder.head.weights().begin(), decoder.head.weights().end());
    if (!decoder.head.bias().empty()) layer.head_bias = decoder.head.bias().front();
  }
  return layer;
}

}  // namespace braid::model
