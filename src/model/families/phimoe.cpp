// Phi-3.5-MoE (Microsoft 2024): layer norms, biases, LongRoPE, and a router of its own kind (Liu et al. 2024).
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_phimoe(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  read_windows(keys, model);
  read_long_rope(keys, model);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  model.output.bias = Presence::kOptional;
  add_experts(keys, model, {.scoring = RouterShape::Scoring::kSparseMixer});
  const auto jitter = static_cast<float>(keys.number("expert_router_jitter", 0.01, 0.0, 1.0));
  for (LayerShape& layer : model.layers)
    if (layer.experts) layer.experts->router.jitter = jitter;
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kPhiMoeNames[] = {{"block_sparse_moe.gate", "ffn_gate_inp"}};

void translate_phimoe(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kPhiMoeNames);
  in.set("attention.layer_norm_epsilon", in.config.number({"rms_norm_eps"}, 1e-5, 1e-12, 1.0));
  in.set("expert_router_jitter", in.config.number({"router_jitter_noise"}, 0.01, 0.0, 1.0));
  translate_expert_keys(in);
  join_experts(in, size, {.module = "block_sparse_moe.experts", .gate = "w1", .up = "w3", .down = "w2"});
}

}  // namespace

const Family kPhiMoe = {"phimoe", describe_phimoe, {"phimoe"}, translate_phimoe};

}  // namespace braid::model
