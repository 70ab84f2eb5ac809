// MPT (MosaicML 2023): scores that fall with distance instead of positions, layer norms without biases, plain feed-forward networks of GELU.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_mpt(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  add_slopes(model, keys.number("attention.max_alibi_bias", 8.0, 0.0, 1e3));
  make_plain(model);
  read_activation(keys, model, {Activation::kGelu, Activation::kGeluTanh});
  const auto clip = static_cast<float>(keys.number("attention.clamp_kqv", 0.0, 0.0, 1e6));
  model.output.norm.bias = Presence::kOptional;
  for (LayerShape& layer : model.layers) {
    layer.attention.clip = clip;
    layer.attention_norm.bias = layer.feed_forward_norm.bias = Presence::kOptional;
    layer.attention.scale = static_cast<float>(keys.number("attention.scale", layer.attention.scale, 1e-9, 1e6));
  }
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kMptNames[] = {{"attn.Wqkv", "attn_qkv"},
                                                                       {"attn.out_proj", "attn_output"},
                                                                       {"ffn.up_proj", "ffn_up"},
                                                                       {"ffn.down_proj", "ffn_down"},
                                                                       {"norm_1", "attn_norm"},
                                                                       {"norm_2", "ffn_norm"},
                                                                       {"transformer.norm_f", "output_norm"}};

void translate_mpt(FolderReader& in) {
  translate_sizes(in, KeyHeads::kAsManyAsHeads);
  in.set("attention.layer_norm_epsilon", in.config.number({"layer_norm_epsilon"}, 1e-5, 1e-12, 1.0));
  if (auto attention = in.config.part("attn_config")) {
    if (!attention->flag({"alibi"}, true))
      in.config.fail(ErrorCode::kUnsupported, "attn_config.alibi is false, which this build cannot compute");
    refuse_option(in, "logit_scale");
    in.set("attention.max_alibi_bias", attention->number({"alibi_bias_max"}, 8.0, 0.0, 1e3));
    in.set("attention.clamp_kqv", attention->number({"clip_qkv"}, 0.0, 0.0, 1e6));
    if (attention->has({"softmax_scale"})) in.set("attention.scale", attention->number({"softmax_scale"}, 1.0, 1e-9, 1e6));
    if (attention->flag({"qk_ln"}, false))
      in.config.fail(ErrorCode::kUnsupported, "attn_config.qk_ln is set, which this build cannot compute");
    if (attention->error && !in.config.error) in.config.error = attention->error;
  }
  in.name_tensors(kMptNames);
  // transformers reads no expansion_ratio, MosaicML's own code does.
  take_feed_forward_length(in);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
}

}  // namespace

const Family kMpt = {"mpt", describe_mpt, {"mpt"}, translate_mpt};

}  // namespace braid::model
