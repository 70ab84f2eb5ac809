#include "model/families/gemma_layers.h"

#include "model/families/gguf_decoder.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <utility>

namespace braid::model {

void bend_gemma(GgufKeys& keys, ModelShape& model, std::int32_t period) {
  read_windows(keys, model, 512, period);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  add_query_norms(model, NormShape::Kind::kRms);
  read_activation(keys, model, {Activation::kGeluTanh});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  model.input.scale = std::sqrt(static_cast<float>(model.embedding));
  for (LayerShape& layer : model.layers) {
    AttentionShape& attention = layer.attention;
    attention.scale = 1.0F;
    attention.value_norm = attention.key_norm;
    attention.value_norm.name += "_of_values";  // which no file has
    attention.value_norm.weight = Presence::kAbsent;
  }
}

void add_local_angles(GgufKeys& keys, ModelShape& model, std::int32_t rotated) {
  RopeParameters local;
  local.base = keys.number("rope.freq_base_swa", 10000.0, 2.0, 1e12);
  local.rotated = rotated;
  model.rotary.push_back(local);
  for (LayerShape& layer : model.layers)
    if (layer.attention.window > 0) layer.attention.rotary = 1;
}

void add_layer_inputs(GgufKeys& keys, ModelShape& model) {
  const std::int32_t width = keys.count("embedding_length_per_layer_input", kMaxDimension);
  if (width == 0) return;
  LayerInputsShape all;
  all.width = width;
  all.table = "per_layer_token_embd";
  all.projection = {
      .name = "per_layer_model_proj", .inputs = model.embedding, .outputs = static_cast<std::int64_t>(model.layers.size()) * width};
  all.norm = {.kind = NormShape::Kind::kRms, .name = "per_layer_proj_norm", .width = width, .epsilon = model.output.norm.epsilon};
  all.table_scale = std::sqrt(static_cast<float>(width));
  all.projection_scale = 1.0F / std::sqrt(static_cast<float>(model.embedding));
  all.scale = 1.0F / std::sqrt(2.0F);
  model.layer_inputs = std::move(all);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto name = [&](std::string_view part) { return layer_tensor(static_cast<std::int32_t>(i), part); };
    LayerInputShape input;
    input.down = {.name = name("inp_gate"), .inputs = model.embedding, .outputs = width};
    input.up = {.name = name("proj"), .inputs = width, .outputs = model.embedding};
    input.post_norm = model.layers[i].feed_forward_norm;
    input.post_norm.name = name("post_norm");
    model.layers[i].input = std::move(input);
  }
}

void share_keys_and_values(GgufKeys& keys, ModelShape& model) {
  const std::size_t layers = model.layers.size();
  const auto shared = static_cast<std::size_t>(keys.count("attention.shared_kv_layers", layers - 1));
  for (std::size_t i = layers - shared; i < layers; ++i) {
    AttentionShape& own = model.layers[i].attention;
    std::size_t source = layers - shared;
    while (source > 0 && model.layers[source - 1].attention.window != own.window) --source;
    if (source == 0)
      return keys.fail(ErrorCode::kBadFile,
                       fmt::format("{} is {}, but layer {} finds none before these whose keys and values it could read",
                                   keys.full("attention.shared_kv_layers"), shared, i));
    const AttentionShape& read = model.layers[source - 1].attention;
    if (read.kv_heads != own.kv_heads || read.head_dim != own.head_dim || own.heads % read.kv_heads != 0)
      return keys.fail(ErrorCode::kBadFile, fmt::format("layers {} and {} share keys and values, but their heads differ", source - 1, i));
    own.shares = static_cast<std::int32_t>(source - 1);
    for (const std::string_view part : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight", "attn_k.bias", "attn_v.bias"})
      model.unused.push_back(layer_tensor(static_cast<std::int32_t>(i), part));
  }
}

void translate_gemma_layers(FolderReader& in, const FolderSize& size) {
  const std::int64_t width = in.config.count({"hidden_size_per_layer_input"}, 0, 0, kMaxDimension);
  in.set("embedding_length_per_layer_input", static_cast<std::uint64_t>(width));
  in.set("attention.shared_kv_layers", static_cast<std::uint64_t>(in.config.count({"num_kv_shared_layers"}, 0, 0, size.layers - 1)));
  const std::int64_t tokens = in.rows("token_embd.weight");
  auto table = in.extract("per_layer_token_embd.weight");
  if (!table) return;
  if (table->shape.size() == 2 && table->shape[1] > 0 && table->shape[1] != tokens) {
    table->order.assign(static_cast<std::size_t>(tokens), 0);
    std::iota(table->order.begin(), table->order.begin() + std::min(tokens, table->shape[1]), 0);
    table->shape[1] = tokens;
  }
  in.put(std::move(*table));
}

}  // namespace braid::model
