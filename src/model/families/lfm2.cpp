// LFM2 (Liquid AI, 2025): short gated convolutions, and attention with norms over heads in some layers; one with experts.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::model {
namespace {

constexpr std::uint64_t kMostTaps = 64;

ShortConvolutionShape convolution_of(std::int32_t index, std::int32_t width, std::int32_t taps) {
  const auto linear = [&](std::string_view part, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(index, part), .inputs = width, .outputs = outputs, .bias = Presence::kOptional};
  };
  return {.width = width,
          .taps = taps,
          .kernel = layer_tensor(index, "shortconv.conv"),
          .bias = Presence::kOptional,
          .input = linear("shortconv.in_proj", 3 * std::int64_t{width}),
          .output = linear("shortconv.out_proj", width)};
}

ModelShape describe_lfm2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.output.norm.name = "token_embd_norm";
  add_query_norms(model, NormShape::Kind::kRms);
  const std::int32_t taps = keys.size("shortconv.l_cache", std::nullopt, kMostTaps);
  if (taps < 2) keys.fail(ErrorCode::kUnsupported, keys.full("shortconv.l_cache") + " is 1, expected at least 2");
  bool attends = false;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (keys.file().tensor(layer_tensor(index, "shortconv.in_proj.weight")) != nullptr) {
      model.layers[i].convolution = convolution_of(index, model.embedding, taps);
    } else {
      attends = true;
    }
  }
  if (!attends) keys.fail(ErrorCode::kUnsupported, "no layer has attention, which this build cannot compute");
  return model;
}

// of tensors in folders
using Lfm2Name = std::pair<std::string_view, std::string_view>;
constexpr std::array kLfm2Names = {
    Lfm2Name{"operator_norm", "attn_norm"},           Lfm2Name{"ffn_norm", "ffn_norm"},
    Lfm2Name{"self_attn.out_proj", "attn_output"},    Lfm2Name{"self_attn.q_layernorm", "attn_q_norm"},
    Lfm2Name{"self_attn.k_layernorm", "attn_k_norm"}, Lfm2Name{"conv.conv", "shortconv.conv"},
    Lfm2Name{"conv.in_proj", "shortconv.in_proj"},    Lfm2Name{"conv.out_proj", "shortconv.out_proj"},
    Lfm2Name{"feed_forward.w1", "ffn_gate"},          Lfm2Name{"feed_forward.w3", "ffn_up"},
    Lfm2Name{"feed_forward.w2", "ffn_down"},          Lfm2Name{"model.embedding_norm", "token_embd_norm"},
    Lfm2Name{"feed_forward.gate", "ffn_gate_inp"},    Lfm2Name{"feed_forward.expert_bias", "exp_probs_b.bias"},
};

FolderSize translate_lfm2(FolderReader& in) {
  const FolderSize size = translate_decoder(in, kLfm2Names);
  in.squeeze("shortconv.conv");
  in.set("attention.layer_norm_rms_epsilon", in.config.number({"norm_eps"}, 1e-5, 1e-12, 1.0));
  in.set("shortconv.l_cache", static_cast<std::uint64_t>(in.config.count({"conv_L_cache"}, 3, 1, static_cast<std::int64_t>(kMostTaps))));
  // Configurations give a width from which the model's code computes the one it has.
  if (const std::int64_t width = in.rows("blk.0.ffn_gate.weight"); width > 0)
    in.set("feed_forward_length", static_cast<std::uint64_t>(width));
  std::vector<std::uint64_t> kv_heads;
  for (std::int32_t i = 0; i < size.layers; ++i)
    kv_heads.push_back(in.rows(layer_tensor(i, "attn_k.weight")) > 0 ? static_cast<std::uint64_t>(size.kv_heads) : 0);
  in.set("attention.head_count_kv", files::GgufArray{std::move(kv_heads)});
  return size;
}

ModelShape describe_lfm2_moe(GgufKeys& keys) {
  ModelShape model = describe_lfm2(keys);
  add_experts(keys, model, {.scoring = RouterShape::Scoring::kSigmoid, .normalised = true, .sum_epsilon = 1e-6F});
  return model;
}

void translate_lfm2_moe(FolderReader& in) {
  const FolderSize size = translate_lfm2(in);
  translate_expert_keys(in);
  translate_router(in, true);
  set_scoring(in, RouterShape::Scoring::kSigmoid);
  in.set("leading_dense_block_count", static_cast<std::uint64_t>(in.config.count({"num_dense_layers"}, 0, 0, kMaxLayers)));
  join_experts(in, size, {.module = "feed_forward.experts", .gate = "w1", .up = "w3", .down = "w2"});
}

}  // namespace

const Family kLfm2Moe = {"lfm2moe", describe_lfm2_moe, {"lfm2_moe"}, translate_lfm2_moe};
const Family kLfm2 = {"lfm2", describe_lfm2, {"lfm2"}, [](FolderReader& in) { translate_lfm2(in); }};

}  // namespace braid::model
