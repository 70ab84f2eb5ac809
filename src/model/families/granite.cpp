// Granite 3 (IBM 2024): Llama with scales of embeddings, scores, branches and logits. Some have experts, and of these some a network of all
// rows beside them.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/families/granite_scales.h"

namespace braid::model {
namespace {

ModelShape describe_granite(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  describe_granite_scales(keys, model);
  return model;
}

ModelShape describe_granite_moe(GgufKeys& keys) {
  ModelShape model = describe_granite(keys);
  add_experts(keys, model, {.scoring = RouterShape::Scoring::kSoftmaxOfChosen});
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kGraniteNames[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},   {"block_sparse_moe.input_linear", "ffn_gate_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"}, {"shared_mlp.input_linear", "ffn_gate_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
};

void translate_granite(FolderReader& in) {
  require_activation(in, {"silu"});
  pair_rotated(in, translate_decoder(in, kGraniteNames));
  translate_granite_scales(in);
}

void translate_granite_moe(FolderReader& in) {
  translate_granite(in);
  translate_expert_keys(in);
  split_experts(in, "ffn_gate_up_exps", "ffn_gate_exps", "ffn_up_exps");
  const auto shared = static_cast<std::int32_t>(in.config.count({"shared_intermediate_size"}, 0, 0, kMaxDimension));
  if (shared > 0) in.set("expert_shared_feed_forward_length", static_cast<std::uint64_t>(shared));
  in.split("ffn_gate_up_shexp", {{"ffn_gate_shexp", consecutive_rows(0, shared)}, {"ffn_up_shexp", consecutive_rows(shared, shared)}});
}

}  // namespace

void describe_granite_scales(GgufKeys& keys, ModelShape& model) {
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  model.input.scale = static_cast<float>(keys.number("embedding_scale", 1.0, 1e-6, 1e6));
  model.output.scale = static_cast<float>(1.0 / keys.number("logit_scale", 1.0, 1e-6, 1e6));
  for (LayerShape& layer : model.layers) {
    layer.residual_scale = static_cast<float>(keys.number("residual_scale", 1.0, 1e-6, 1e6));
    layer.attention.scale = static_cast<float>(keys.number("attention.scale", layer.attention.scale, 1e-9, 1e6));
  }
}

void translate_granite_scales(FolderReader& in) {
  in.set("embedding_scale", in.config.number({"embedding_multiplier"}, 1.0, 1e-6, 1e6));
  in.set("residual_scale", in.config.number({"residual_multiplier"}, 1.0, 1e-6, 1e6));
  in.set("logit_scale", in.config.number({"logits_scaling"}, 1.0, 1e-6, 1e6));
  in.set("attention.scale", in.config.number({"attention_multiplier"}, 1.0, 1e-9, 1e6));
}

const Family kGranite = {"granite", describe_granite, {"granite"}, translate_granite};
const Family kGraniteMoe = {"granitemoe", describe_granite_moe, {"granitemoe", "granitemoeshared"}, translate_granite_moe};

}  // namespace braid::model
