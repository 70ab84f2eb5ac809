// Gemma 4 (2026): full layers with larger heads, of which a part rotates, and perhaps fewer key heads that are values as well; in the small
// sizes inputs of each layer and keys and values that later layers share; in one size experts as a branch beside the network of all rows.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gemma_layers.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/families/layer_heads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

// Windowed layers' heads have a size of their own.
void resize_local_heads(GgufKeys& keys, ModelShape& model, std::int32_t head_dim) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    AttentionShape& attention = model.layers[i].attention;
    if (attention.window == 0) continue;
    const AttentionShape old = std::move(attention);
    const DecoderSize size{.embedding = model.embedding, .heads = old.heads, .kv_heads = old.kv_heads, .head_dim = head_dim};
    attention = decoder_attention(keys, size, static_cast<std::int32_t>(i));
    attention.window = old.window;
    attention.rotary = old.rotary;
  }
}

void add_expert_branches(GgufKeys& keys, ModelShape& model) {
  if (!keys.has("expert_count")) return;
  std::vector<FeedForwardShape> dense;
  for (const LayerShape& layer : model.layers) dense.push_back(layer.feed_forward);
  add_experts(keys, model, {.normalised = true});
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerShape& layer = model.layers[i];
    if (!layer.experts) continue;
    layer.feed_forward = dense[i];
    const auto norm = [&](std::string_view part) {
      NormShape shape = layer.feed_forward_norm;
      shape.name = layer_tensor(static_cast<std::int32_t>(i), part);
      return shape;
    };
    ExpertsShape& experts = *layer.experts;
    experts.own_norm = norm("pre_ffw_norm_2");
    experts.shared_post_norm = norm("post_ffw_norm_1");
    experts.post_norm = norm("post_ffw_norm_2");
    experts.router.norm = norm("ffn_gate_inp.scale");
    experts.router.norm.bare = true;
    experts.router.score_scale = 1.0F / std::sqrt(static_cast<float>(model.embedding));
    experts.router.weights = layer_tensor(static_cast<std::int32_t>(i), "ffn_down_exps");
  }
}

ModelShape describe_gemma4(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  const auto full = static_cast<std::uint64_t>(model.layers.front().attention.head_dim);
  const std::int32_t local = keys.size("attention.key_length_swa", full, kMaxHeadDim);
  if (keys.size("attention.value_length_swa", static_cast<std::uint64_t>(local), kMaxHeadDim) != local)
    keys.fail(ErrorCode::kUnsupported, "the values of windowed layers have another size than their keys, which this build cannot compute");
  const std::int32_t rotated = keys.size("rope.dimension_count_swa", static_cast<std::uint64_t>(local), kMaxHeadDim);
  if (rotated > local || rotated % 2 != 0)
    keys.fail(ErrorCode::kBadFile,
              fmt::format("{} is {}, expected an even number up to {}", keys.full("rope.dimension_count_swa"), rotated, local));
  read_windows(keys, model, 512, 6);
  resize_local_heads(keys, model, local);
  bend_gemma(keys, model, 6);
  add_local_angles(keys, model, rotated);
  model.output.cap = static_cast<float>(keys.number("final_logit_softcapping", 0.0, 0.0, 1e6));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto has = [&](std::string_view part) { return keys.file().tensor(layer_tensor(static_cast<std::int32_t>(i), part)) != nullptr; };
    model.layers[i].attention.keys_are_values = has("attn_k.weight") && !has("attn_v.weight");
    model.layers[i].attention.looks_ahead = model.layers[i].attention.window > 0;
    if (has("layer_output_scale.weight")) model.layers[i].output_scale = layer_tensor(static_cast<std::int32_t>(i), "layer_output_scale");
  }
  add_layer_inputs(keys, model);
  share_keys_and_values(keys, model);
  add_expert_branches(keys, model);
  return model;
}

constexpr auto kGemma4Names = [] {
  constexpr std::pair<std::string_view, std::string_view> own[] = {
      {"layer_scalar", "layer_output_scale.weight"},
      {"router.proj", "ffn_gate_inp"},
      {"router.scale", "ffn_gate_inp.scale"},
      {"router.per_expert_scale", "ffn_down_exps.scale"},
      {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
      {"experts.down_proj", "ffn_down_exps.weight"},
      {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
      {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
      {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
  };
  std::array<std::pair<std::string_view, std::string_view>, std::size(own) + std::size(kGemmaLayerNames)> all;
  std::ranges::copy(kGemmaLayerNames, std::ranges::copy(own, all.begin()).out);
  return all;
}();

// Networks of layers that share keys and values may be twice as wide.
void translate_double_widths(FolderReader& in, const FolderSize& size) {
  if (!in.config.flag({"use_double_wide_mlp"}, false)) return;
  const auto width = static_cast<std::uint64_t>(in.config.count({"intermediate_size"}, std::nullopt, 1, kMaxDimension / 2));
  const std::int64_t shared = in.config.count({"num_kv_shared_layers"}, 0, 0, size.layers);
  std::vector<std::uint64_t> widths(static_cast<std::size_t>(size.layers), width);
  std::fill(widths.end() - shared, widths.end(), 2 * width);
  in.set("feed_forward_length", files::GgufArray{std::move(widths)});
}

void translate_gemma4(FolderReader& in) {
  require_activation(in, {"gelu_tanh"});
  if (in.config.text({"use_bidirectional_attention"}, "") == "all")
    in.config.fail(ErrorCode::kUnsupported, "use_bidirectional_attention is \"all\", which this build cannot compute");
  FolderSize size = translate_sizes(in);
  if (in.config.error) return;
  translate_layer_heads(in, size);
  translate_rope(in, size, size.head_dim);
  if (in.config.error) return;
  in.name_tensors(kGemma4Names);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  in.set("final_logit_softcapping", in.config.number({"final_logit_softcapping"}, 0.0, 0.0, 1e6));
  translate_double_widths(in, size);
  translate_gemma_layers(in, size);
  if (in.config.flag({"enable_moe_block"}, false)) translate_expert_keys(in);
}

}  // namespace

const Family kGemma4 = {"gemma4", describe_gemma4, {"gemma4_text", "gemma4"}, translate_gemma4};

}  // namespace braid::model
