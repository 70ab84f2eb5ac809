// Mamba-2 (Dao and Gu 2024) without attention or feed-forward networks; Nemotron-H (NVIDIA 2025), whose layers are one of the three each.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/families/selective_layers.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::uint64_t kMambaContext = 1U << 20;  // which has no bound

float norm_epsilon(GgufKeys& keys) { return static_cast<float>(keys.number(rms_epsilon_key(keys), std::nullopt, 1e-12, 1.0)); }

// Nothing but a norm and Mamba-2.
LayerShape only_selective(GgufKeys& keys, const SelectiveStateShape& sizes, std::int32_t index, const ModelShape& model) {
  LayerShape layer;
  layer.attention_norm = model.output.norm;
  layer.attention_norm.name = layer_tensor(index, "attn_norm");
  layer.selective = selective_layer(keys, sizes, index, model);
  return layer;
}

ModelShape describe_mamba2(GgufKeys& keys) {
  const DecoderSize size = read_ends(keys);
  ModelShape model = decoder_ends(size);
  model.output.norm.kind = NormShape::Kind::kRms;
  model.output.norm.epsilon = norm_epsilon(keys);
  const SelectiveStateShape sizes = read_selective_sizes(keys);
  for (std::int32_t i = 0; i < size.layers && !keys.error; ++i) model.layers.push_back(only_selective(keys, sizes, i, model));
  return model;
}

FeedForwardShape squared_feed_forward(GgufKeys& keys, const DecoderSize& size, std::int32_t index) {
  FeedForwardShape shape = gated_feed_forward(keys, size, index);
  shape.gated = false;
  shape.activation = Activation::kReluSquared;
  shape.up.bias = shape.down.bias = Presence::kOptional;
  return shape;
}

// A layer is what its tensors say, behind the only norm it has.
ModelShape describe_nemotron_h(GgufKeys& keys) {
  const DecoderSize size = read_size(keys);
  ModelShape model = decoder_ends(size);
  model.output.norm.kind = NormShape::Kind::kRms;
  model.output.norm.epsilon = norm_epsilon(keys);
  const SelectiveStateShape sizes = read_selective_sizes(keys);
  for (std::int32_t i = 0; i < size.layers && !keys.error; ++i) {
    LayerShape layer = only_selective(keys, sizes, i, model);
    const bool attends = keys.file().tensor(layer_tensor(i, "attn_q.weight")) != nullptr ||
                         keys.file().tensor(layer_tensor(i, "attn_qkv.weight")) != nullptr;
    if (!has_selective_layer(keys, i)) {
      layer.selective.reset();
      if (attends) {
        layer.attention = decoder_attention(keys, size, i);
        layer.attention.output.bias = Presence::kOptional;
      } else {
        layer.feed_forward = squared_feed_forward(keys, size, i);
        std::swap(layer.feed_forward_norm, layer.attention_norm);
      }
    }
    model.layers.push_back(std::move(layer));
  }
  if (!keys.has("expert_count")) return model;
  add_experts(keys, model, {.scoring = RouterShape::Scoring::kSigmoid, .normalised = true, .group_best = 2, .sum_epsilon = 1e-20F});
  return model;
}

// of tensors in folders
using MixerName = std::pair<std::string_view, std::string_view>;
constexpr std::array kMixerNames = {
    MixerName{"backbone.embeddings", "token_embd"},
    MixerName{"backbone.norm_f", "output_norm"},
    MixerName{"norm", "attn_norm"},
    MixerName{"mixer.in_proj", "ssm_in"},
    MixerName{"mixer.conv1d", "ssm_conv1d"},
    MixerName{"mixer.dt_bias", "ssm_dt.bias"},
    MixerName{"mixer.A_log", "ssm_a"},
    MixerName{"mixer.D", "ssm_d"},
    MixerName{"mixer.norm", "ssm_norm"},
    MixerName{"mixer.out_proj", "ssm_out"},
    MixerName{"mixer.q_proj", "attn_q"},
    MixerName{"mixer.k_proj", "attn_k"},
    MixerName{"mixer.v_proj", "attn_v"},
    MixerName{"mixer.o_proj", "attn_output"},
    MixerName{"mixer.up_proj", "ffn_up"},
    MixerName{"mixer.down_proj", "ffn_down"},
    MixerName{"mixer.fc1_latent_proj", "ffn_latent_down"},
    MixerName{"mixer.fc2_latent_proj", "ffn_latent_up"},
    MixerName{"mixer.gate", "ffn_gate_inp"},
    MixerName{"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
    MixerName{"mixer.shared_experts.up_proj", "ffn_up_shexp"},
    MixerName{"mixer.shared_experts.down_proj", "ffn_down_shexp"},
};

constexpr SelectiveNames kMambaSizes = {"num_heads", "head_dim", "state_size", "n_groups", "conv_kernel"};
constexpr SelectiveNames kNemotronSizes = {"mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"};

void translate_mamba2(FolderReader& in) {
  require_activation(in, {"silu"});
  const auto count = [&](std::string_view key, FolderConfig::Names names, std::uint64_t most) {
    const std::int64_t value = in.config.count(names, std::nullopt, 1, static_cast<std::int64_t>(most));
    in.set(key, static_cast<std::uint64_t>(value));
    return static_cast<std::int32_t>(value);
  };
  const std::int32_t layers = count("block_count", {"num_hidden_layers", "n_layer"}, kMaxLayers);
  count("embedding_length", {"hidden_size", "d_model"}, kMaxDimension);
  in.set("context_length", kMambaContext);
  for (const std::string_view none : {"feed_forward_length", "attention.head_count"}) in.set(none, std::uint64_t{0});
  in.set("attention.layer_norm_rms_epsilon", in.config.number({"layer_norm_epsilon", "rms_norm_eps"}, 1e-5, 1e-12, 1.0));
  in.name_tensors(kMixerNames);
  if (in.config.flag({"tie_word_embeddings"}, false) && in.has("token_embd.weight")) in.remove("output.weight");
  translate_selective(in, layers, kMambaSizes);  // transformers norms all values at once, whatever the groups
}

void translate_nemotron_experts(FolderReader& in, const FolderSize& size) {
  in.remove_if([](std::string_view name) { return name.starts_with("mtp."); });  // predict tokens further ahead
  bool any = false;
  for (std::int32_t i = 0; i < size.layers; ++i) any |= in.rows(layer_tensor(i, "ffn_gate_inp.weight")) > 0;
  if (!any) return;
  if (const std::int64_t latent = in.config.count({"moe_latent_size"}, 0, 0, kMaxDimension); latent > 0)
    in.set("moe_latent_size", static_cast<std::uint64_t>(latent));
  translate_expert_keys(in);
  translate_router(in, true);
  set_scoring(in, RouterShape::Scoring::kSigmoid);
  join_experts(in, size, {.layers = "backbone.layers", .module = "mixer.experts"});
  set_shared_width(in, size);
}

void translate_nemotron_h(FolderReader& in) {
  if (in.config.text({"mlp_hidden_act"}, "relu2") != "relu2")
    in.config.fail(ErrorCode::kUnsupported, "mlp_hidden_act is no relu2, which this build cannot compute");
  refuse_option(in, "sliding_window");
  const FolderSize size = translate_decoder(in, kMixerNames);
  in.set("attention.layer_norm_rms_epsilon", in.config.number({"layer_norm_epsilon", "rms_norm_eps"}, 1e-5, 1e-12, 1.0));
  if (in.config.error) return;
  translate_selective(in, size.layers, kNemotronSizes, true);
  translate_nemotron_experts(in, size);
  const auto width = static_cast<std::uint64_t>(in.config.count({"intermediate_size"}, 1, 1, kMaxDimension));
  std::vector<std::uint64_t> kv_heads;
  std::vector<std::uint64_t> widths;
  for (std::int32_t i = 0; i < size.layers; ++i) {
    kv_heads.push_back(in.rows(layer_tensor(i, "attn_k.weight")) > 0 ? static_cast<std::uint64_t>(size.kv_heads) : 0);
    const bool feeds = in.rows(layer_tensor(i, "ffn_up.weight")) > 0 || in.rows(layer_tensor(i, "ffn_gate_inp.weight")) > 0;
    widths.push_back(feeds ? width : 0);
  }
  in.set("attention.head_count_kv", files::GgufArray{std::move(kv_heads)});
  in.set("feed_forward_length", files::GgufArray{std::move(widths)});
}

}  // namespace

const Family kMamba2 = {"mamba2", describe_mamba2, {"mamba2"}, translate_mamba2};
const Family kNemotronH = {"nemotron_h", describe_nemotron_h, {"nemotron_h"}, translate_nemotron_h};
const Family kNemotronHMoe = {"nemotron_h_moe", describe_nemotron_h, {}, nullptr};

}  // namespace braid::model
