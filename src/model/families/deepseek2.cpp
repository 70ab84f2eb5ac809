// DeepSeek V2, V3, R1 (2024, 2025), Kimi K2 (Moonshot 2025) and GLM-4.7-Flash: attention to latents, experts after some dense layers.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"
#include "model/families/latent_decoder.h"

#include <algorithm>
#include <fmt/format.h>

namespace braid::model {
namespace {

ModelShape describe_deepseek2(GgufKeys& keys) {
  ModelShape model = latent_decoder(keys);
  if (keys.error) return model;
  if (!keys.has("expert_count")) {
    take_prediction_layers(keys, model);
    return model;
  }
  // Files of V2 name no function and have no corrections; those of GLM-4.7-Flash have these.
  const auto corrects = [](const files::GgufTensor& tensor) { return tensor.name.ends_with(".exp_probs_b.bias"); };
  const bool is_sigmoid = std::ranges::any_of(keys.file().tensors(), corrects);
  add_experts(keys, model, {.scoring = is_sigmoid ? RouterShape::Scoring::kSigmoid : RouterShape::Scoring::kSoftmax});
  for (LayerShape& layer : model.layers) {
    if (!layer.experts || layer.experts->router.scoring != RouterShape::Scoring::kSigmoid) continue;
    RouterShape& router = layer.experts->router;
    router.sum_epsilon = 1e-20F;
    if (router.groups > 1) router.group_best = std::min(2, router.experts() / router.groups);
  }
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  take_prediction_layers(keys, model);
  return model;
}

void translate_deepseek_scores(FolderReader& in) {
  auto part = in.config.part("rope_parameters");
  if (!part) part = in.config.part("rope_scaling");
  const double all = part ? part->number({"mscale_all_dim"}, 0.0, 0.0, 1e3) : 0.0;
  if (all == 0.0) return;
  in.set("rope.scaling.yarn_log_multiplier", 0.1 * all);
  // llama.cpp takes angles without a factor then, and would multiply them once more.
  if (part->number({"mscale"}, 0.0, 0.0, 1e3) == all && !part->has({"attention_factor"})) in.unset("rope.scaling.attn_factor");
}

void translate_deepseek_experts(FolderReader& in, const FolderSize& size) {
  if (!in.config.has({"n_routed_experts"})) return;
  const bool is_v2 = in.config.model_type() == "deepseek_v2";
  translate_expert_keys(in);
  translate_router(in, !is_v2);
  const std::string scoring = in.config.text({"scoring_func"}, is_v2 ? "softmax" : "sigmoid");
  if (scoring != "softmax" && scoring != "sigmoid")
    in.config.fail(ErrorCode::kUnsupported, fmt::format("scoring_func is \"{}\", expected softmax or sigmoid", scoring));
  set_scoring(in, scoring == "softmax" ? RouterShape::Scoring::kSoftmax : RouterShape::Scoring::kSigmoid);
  if (in.config.text({"topk_method"}, "") == "greedy") in.set("expert_group_count", std::uint64_t{1});
  join_experts(in, size);
}

void translate_deepseek2(FolderReader& in) {
  require_activation(in, {"silu"});
  if (!in.config.flag({"rope_interleave"}, true))
    in.config.fail(ErrorCode::kUnsupported, "rope_interleave is false, which this build cannot compute");
  LatentFolder latent = translate_latent_decoder(in);
  if (in.config.error) return;
  translate_deepseek_scores(in);
  place_prediction_layer(in, latent.size);
  translate_deepseek_experts(in, latent.size);
  drop_later_layers(in, latent.size);
  part_latent_heads(in, latent.heads);
}

}  // namespace

const Family kDeepSeek2 = {
    "deepseek2", describe_deepseek2, {"deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite"}, translate_deepseek2};

}  // namespace braid::model
