// BLOOM (BigScience 2022): scores that fall with distance instead of positions, a norm of embeddings, layer norms, biases everywhere.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_bloom(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  add_slopes(model, keys.number("attention.max_alibi_bias", 8.0, 0.0, 1e3));
  make_plain(model);
  read_activation(keys, model, {Activation::kGeluTanh});
  set_biases(model, Parts::kAttention, Presence::kRequired);
  set_biases(model, Parts::kFeedForward, Presence::kRequired);
  model.input.norm = model.output.norm;
  model.input.norm.name = "token_embd_norm";
  return model;
}

void translate_bloom(FolderReader& in) {
  refuse_option(in, "apply_residual_connection_post_layernorm");
  const FolderSize size = translate_sizes(in, KeyHeads::kAsManyAsHeads);
  in.name_tensors({});
  take_feed_forward_length(in);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  if (!in.config.error) in.reorder("attn_qkv", ungrouped_rows(size.heads, size.heads, size.head_dim));
}

}  // namespace

const Family kBloom = {"bloom", describe_bloom, {"bloom"}, translate_bloom};

}  // namespace braid::model
