// GPT-J (EleutherAI 2021): both branches read one layer norm, neighbouring pairs of part of a head rotate, feed-forward and output have
// biases.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_gptj(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  model.rotary.front().interleaved = true;
  make_plain(model);
  read_activation(keys, model, {Activation::kGeluTanh, Activation::kGelu});
  set_biases(model, Parts::kFeedForward, Presence::kRequired);
  model.output.bias = Presence::kRequired;
  for (LayerShape& layer : model.layers) {
    layer.parallel = true;
    layer.feed_forward_norm = layer.attention_norm;
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kGptJNames[] = {{"attn.q_proj", "attn_q"}, {"attn.k_proj", "attn_k"},
                                                                        {"attn.v_proj", "attn_v"}, {"attn.out_proj", "attn_output"},
                                                                        {"mlp.fc_in", "ffn_up"},   {"mlp.fc_out", "ffn_down"}};

void translate_gptj(FolderReader& in) {
  const FolderSize size = translate_sizes(in, KeyHeads::kAsManyAsHeads);
  translate_rope(in, size, static_cast<std::int32_t>(in.config.count({"rotary_dim"}, size.head_dim, 2, size.head_dim)));
  in.name_tensors(kGptJNames);
  take_feed_forward_length(in);
}

}  // namespace

const Family kGptJ = {"gptj", describe_gptj, {"gptj"}, translate_gptj};

}  // namespace braid::model
