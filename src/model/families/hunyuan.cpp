// Hunyuan (Tencent 2025): Llama with norms over the heads of queries and keys after they are rotated; with experts a network of all rows
// beside them.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_hunyuan(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  for (LayerShape& layer : model.layers) layer.attention.norm_after_rotation = true;
  return model;
}

ModelShape describe_hunyuan_moe(GgufKeys& keys) {
  ModelShape model = describe_hunyuan(keys);
  add_experts(keys, model, {.normalised = true});
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kHunyuanNames[] = {
    {"self_attn.query_layernorm", "attn_q_norm"},
    {"self_attn.key_layernorm", "attn_k_norm"},
    {"mlp.gate.wg", "ffn_gate_inp"},
    {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
    {"mlp.shared_mlp.down_proj", "ffn_down_shexp"},
};

FolderSize translate_attention(FolderReader& in) {
  require_activation(in, {"silu"});
  refuse_option(in, "use_cla");
  return translate_decoder(in, kHunyuanNames);
}

void translate_hunyuan(FolderReader& in) { translate_attention(in); }

void translate_hunyuan_moe(FolderReader& in) {
  const FolderSize size = translate_attention(in);
  translate_expert_keys(in, {"moe_intermediate_size", "intermediate_size"});
  join_experts(in, size);
  set_shared_width(in, size);
}

}  // namespace

const Family kHunyuan = {"hunyuan-dense", describe_hunyuan, {"hunyuan_v1_dense"}, translate_hunyuan};
const Family kHunyuanMoe = {"hunyuan-moe", describe_hunyuan_moe, {"hunyuan_v1_moe"}, translate_hunyuan_moe};

}  // namespace braid::model
