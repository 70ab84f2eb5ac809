// GPT-2 (Radford et al. 2019): learned positions, layer norms, plain feed-forward networks of GELU, biases everywhere, and queries, keys and
// values in one tensor. Folders hold matrices the other way round.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_gpt2(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  model.rotary.clear();
  model.input.positions = "position_embd";
  make_plain(model);
  read_activation(keys, model, {Activation::kGeluTanh, Activation::kGelu, Activation::kRelu});
  set_biases(model, Parts::kAttention, Presence::kRequired);
  set_biases(model, Parts::kFeedForward, Presence::kRequired);
  for (LayerShape& layer : model.layers) {
    layer.attention.rotary = kNoRotary;
    layer.attention.scale = static_cast<float>(keys.number("attention.scale", layer.attention.scale, 1e-6, 1e3));
  }
  return model;
}

void translate_gpt2(FolderReader& in) {
  translate_sizes(in, KeyHeads::kAsManyAsHeads);
  refuse_option(in, "scale_attn_by_inverse_layer_idx");
  if (!in.config.flag({"scale_attn_weights"}, true)) in.set("attention.scale", 1.0);
  in.name_tensors({});
  for (const std::string_view part : {"attn_qkv", "attn_output", "ffn_up", "ffn_down"}) in.transpose(part);
  take_feed_forward_length(in);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
}

}  // namespace

const Family kGpt2 = {"gpt2", describe_gpt2, {"gpt2"}, translate_gpt2};

}  // namespace braid::model
