// StableLM 2 and 3B (Stability AI 2023, 2024): layer norms, part of a head rotates; the 12B model has parallel branches and norms for each
// head.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_stablelm(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  set_biases(model, Parts::kQueryKeyValue, Presence::kOptional);
  if (keys.file().tensor("blk.0.attn_q_norm.weight") != nullptr) add_query_norms(model, NormShape::Kind::kLayer);
  const bool one_norm = keys.file().tensor("blk.0.ffn_norm.weight") == nullptr;
  for (LayerShape& layer : model.layers) {
    layer.parallel = one_norm;
    if (one_norm) layer.feed_forward_norm = layer.attention_norm;
    layer.attention.query_norm.rows = layer.attention.heads;
    layer.attention.key_norm.rows = layer.attention.kv_heads;
  }
  return model;
}

void translate_stablelm(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_sizes(in);
  translate_rope(in, size, rotated_of(in, size, 0.25));
  in.name_tensors({});
  if (in.config.flag({"tie_word_embeddings"}, false)) in.remove("output.weight");
  // Folders have one tensor for each head.
  in.join_heads("self_attn.q_layernorm.norms", "attn_q_norm", size.layers, size.heads);
  in.join_heads("self_attn.k_layernorm.norms", "attn_k_norm", size.layers, size.kv_heads);
}

}  // namespace

const Family kStableLm = {"stablelm", describe_stablelm, {"stablelm", "stablelm_epoch"}, translate_stablelm};

}  // namespace braid::model
