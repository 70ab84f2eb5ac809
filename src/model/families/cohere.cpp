// Command R (Cohere 2024): both branches read one layer norm without bias, rotated pairs are neighbours, logits are scaled, and the largest
// has norms for each head of queries and keys.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_cohere(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  model.rotary.front().interleaved = true;
  model.output.norm.bias = Presence::kAbsent;
  model.output.scale = static_cast<float>(keys.number("logit_scale", 1.0, 1e-6, 1e6));
  const bool normed = keys.file().tensor("blk.0.attn_q_norm.weight") != nullptr;
  if (normed) add_query_norms(model, NormShape::Kind::kLayer);
  for (LayerShape& layer : model.layers) {
    layer.parallel = true;
    layer.attention_norm.bias = Presence::kAbsent;
    layer.feed_forward_norm = layer.attention_norm;
    layer.attention.query_norm.rows = layer.attention.heads;
    layer.attention.key_norm.rows = layer.attention.kv_heads;
  }
  set_biases(model, Parts::kAttention, Presence::kOptional);
  return model;
}

void translate_cohere(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  in.set("logit_scale", in.config.number({"logit_scale"}, 0.0625, 1e-6, 1e6));
}

}  // namespace

const Family kCohere = {"command-r", describe_cohere, {"cohere"}, translate_cohere};

}  // namespace braid::model
