// Granite 4 (IBM 2025): Mamba-2, attention without positions in some layers, Granite's scales, and experts beside a network of all rows in
// some. Bamba (IBM 2024) is the same without scales, and with positions.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/families/granite_scales.h"
#include "model/families/selective_layers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

ModelShape describe_granite_hybrid(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  describe_granite_scales(keys, model);
  const bool rotates = keys.flag("rope.scaling.finetuned", false);
  std::optional<SelectiveStateShape> sizes;
  bool attends = false;
  for (std::size_t i = 0; i < model.layers.size() && !keys.error; ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (!rotates) model.layers[i].attention.rotary = kNoRotary;
    if (!has_selective_layer(keys, index)) {
      attends = true;
      continue;
    }
    if (!sizes) sizes = read_selective_sizes(keys);
    model.layers[i].selective = selective_layer(keys, *sizes, index, model);
  }
  if (!attends) keys.fail(ErrorCode::kUnsupported, "no layer has attention, which this build cannot compute");
  if (keys.count("expert_count", kMaxDimension) > 0) add_experts(keys, model, {.scoring = RouterShape::Scoring::kSoftmaxOfChosen});
  return model;
}

// of tensors in folders
using GraniteHybridName = std::pair<std::string_view, std::string_view>;
constexpr std::array kGraniteHybridNames = {
    GraniteHybridName{"mamba.in_proj", "ssm_in"},
    GraniteHybridName{"mamba.conv1d", "ssm_conv1d"},
    GraniteHybridName{"mamba.dt_bias", "ssm_dt.bias"},
    GraniteHybridName{"mamba.A_log", "ssm_a"},
    GraniteHybridName{"mamba.D", "ssm_d"},
    GraniteHybridName{"mamba.norm", "ssm_norm"},
    GraniteHybridName{"mamba.out_proj", "ssm_out"},
    GraniteHybridName{"shared_mlp.input_linear", "ffn_up"},
    GraniteHybridName{"shared_mlp.output_linear", "ffn_down"},
    // Beside experts.
    GraniteHybridName{"block_sparse_moe.router.layer", "ffn_gate_inp"},
    GraniteHybridName{"block_sparse_moe.input_linear", "ffn_gate_up_exps"},
    GraniteHybridName{"block_sparse_moe.output_linear", "ffn_down_exps"},
    // Bamba's.
    GraniteHybridName{"feed_forward.gate_proj", "ffn_gate"},
    GraniteHybridName{"feed_forward.up_proj", "ffn_up"},
    GraniteHybridName{"feed_forward.down_proj", "ffn_down"},
    GraniteHybridName{"pre_ff_layernorm", "ffn_norm"},
    GraniteHybridName{"model.final_layernorm", "output_norm"},
};

// Layers with a state have no keys and values.
void translate_layers(FolderReader& in, const FolderSize& size) {
  std::vector<std::uint64_t> kv_heads;
  for (std::int32_t i = 0; i < size.layers; ++i)
    kv_heads.push_back(in.rows(layer_tensor(i, "attn_k.weight")) > 0 ? static_cast<std::uint64_t>(size.kv_heads) : 0);
  if (std::ranges::find(kv_heads, 0U) != kv_heads.end()) translate_selective(in, size.layers);
  in.set("attention.head_count_kv", files::GgufArray{std::move(kv_heads)});
}

void translate_bamba(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kGraniteHybridNames, 0.5);
  if (in.config.error) return;
  in.set("rope.scaling.finetuned", true);
  const auto older = in.config.count({"attn_rotary_emb"}, rotated_of(in, size, 0.5), 2, size.head_dim);
  translate_rope(in, size, static_cast<std::int32_t>(older));
  pair_rotated(in, size, static_cast<std::int32_t>(older));
  translate_layers(in, size);
}

void translate_granite_hybrid(FolderReader& in) {
  if (in.config.model_type() == "bamba") return translate_bamba(in);
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kGraniteHybridNames);
  pair_rotated(in, size);
  translate_granite_scales(in);
  in.set("rope.scaling.finetuned", in.config.text({"position_embedding_type"}, "nope") == "rope");
  translate_expert_keys(in);
  const auto width = in.config.count({"shared_intermediate_size"}, std::nullopt, 1, static_cast<std::int64_t>(kMaxDimension));
  if (in.config.error) return;
  const auto rows = static_cast<std::int32_t>(width);
  if (in.has_key("expert_count")) {
    in.set("expert_shared_feed_forward_length", static_cast<std::uint64_t>(width));
    split_experts(in, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps");
    in.split("ffn_up", {{"ffn_gate_shexp", consecutive_rows(0, rows)}, {"ffn_up_shexp", consecutive_rows(rows, rows)}});
    in.split("ffn_down", {{"ffn_down_shexp", consecutive_rows(0, size.embedding)}});
  } else {
    in.set("feed_forward_length", static_cast<std::uint64_t>(width));
    in.split("ffn_up", {{"ffn_gate", consecutive_rows(0, rows)}, {"ffn_up", consecutive_rows(rows, rows)}});
  }
  translate_layers(in, size);
}

}  // namespace

const Family kGraniteHybrid = {"granitehybrid", describe_granite_hybrid, {"granitemoehybrid", "bamba"}, translate_granite_hybrid};

}  // namespace braid::model
