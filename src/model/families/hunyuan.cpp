// Hunyuan's dense models (Tencent 2025): Llama with norms over the heads of queries and keys after they are rotated.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_hunyuan(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  for (LayerShape& layer : model.layers) layer.attention.norm_after_rotation = true;
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kHunyuanNames[] = {{"self_attn.query_layernorm", "attn_q_norm"},
                                                                           {"self_attn.key_layernorm", "attn_k_norm"}};

void translate_hunyuan(FolderReader& in) {
  require_activation(in, {"silu"});
  refuse_option(in, "use_cla");
  translate_decoder(in, kHunyuanNames);
}

}  // namespace

const Family kHunyuan = {"hunyuan-dense", describe_hunyuan, {"hunyuan_v1_dense"}, translate_hunyuan};

}  // namespace braid::model
