// GLM-4.5 to 4.7 (Zhipu 2025) and dots.llm1 (2025): experts as in DeepSeek V3 with ordinary attention.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

constexpr RouterHabits kSigmoidRouter = {
    .scoring = RouterShape::Scoring::kSigmoid, .normalised = true, .group_best = 2, .sum_epsilon = 1e-20F};

ModelShape describe_glm4moe(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  if (keys.file().tensor("blk.0.attn_q_norm.weight") != nullptr) add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kQueryKeyValue, Presence::kOptional);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    model.layers[i].feed_forward_norm.name = layer_tensor(static_cast<std::int32_t>(i), "post_attention_norm");
  add_experts(keys, model, kSigmoidRouter);
  take_prediction_layers(keys, model);
  return model;
}

ModelShape describe_dots1(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  add_experts(keys, model, kSigmoidRouter);
  return model;
}

void translate(FolderReader& in, FolderReader::Names names) {
  require_activation(in, {"silu"});
  FolderSize size = translate_decoder(in, names);
  place_prediction_layer(in, size);
  translate_expert_keys(in);
  translate_router(in, true);
  set_scoring(in, kSigmoidRouter.scoring);
  join_experts(in, size);
  drop_later_layers(in, size);
}

constexpr std::pair<std::string_view, std::string_view> kGlmNames[] = {{"post_attention_layernorm", "post_attention_norm"}};

void translate_glm4moe(FolderReader& in) { translate(in, kGlmNames); }

void translate_dots1(FolderReader& in) { translate(in, {}); }

}  // namespace

const Family kGlm4Moe = {"glm4moe", describe_glm4moe, {"glm4_moe"}, translate_glm4moe};
const Family kDots1 = {"dots1", describe_dots1, {"dots1"}, translate_dots1};

}  // namespace braid::model
