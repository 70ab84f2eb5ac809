// OLMoE (Ai2 2024): norms over all queries and all keys; weights of experts are not normalised. FlexOlmo (2025) has OLMo 2's norms.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_olmoe(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  add_query_norms(model, NormShape::Kind::kRms, true);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  add_experts(keys, model, {});
  return model;
}

ModelShape describe_flexolmo(GgufKeys& keys) {
  ModelShape model = describe_olmoe(keys);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  drop_pre_norms(model);
  return model;
}

void translate_experts(FolderReader& in, FolderReader::Names names) {
  require_activation(in, {"silu"});
  refuse_option(in, "clip_qkv");
  const FolderSize size = translate_decoder(in, names);
  translate_expert_keys(in);
  translate_router(in, false);
  join_experts(in, size);
}

void translate_olmoe(FolderReader& in) { translate_experts(in, {}); }

constexpr std::pair<std::string_view, std::string_view> kFlexOlmoNames[] = {{"post_attention_layernorm", "post_attention_norm"},
                                                                            {"post_feedforward_layernorm", "post_ffw_norm"}};

void translate_flexolmo(FolderReader& in) { translate_experts(in, kFlexOlmoNames); }

}  // namespace

const Family kOlmoe = {"olmoe", describe_olmoe, {"olmoe"}, translate_olmoe};
const Family kFlexOlmo = {"flexolmo", describe_flexolmo, {"flex_olmo"}, translate_flexolmo};

}  // namespace braid::model
