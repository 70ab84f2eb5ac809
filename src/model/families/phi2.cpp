// Phi-1, 1.5 and 2 (Microsoft 2023): both branches read one layer norm; biases everywhere, of the output too; part of a head rotates.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_phi2(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  make_plain(model);
  read_activation(keys, model, {Activation::kGeluTanh, Activation::kGelu});
  set_biases(model, Parts::kAttention, Presence::kRequired);
  set_biases(model, Parts::kFeedForward, Presence::kRequired);
  model.output.bias = Presence::kRequired;
  for (LayerShape& layer : model.layers) {
    layer.parallel = true;
    layer.feed_forward_norm = layer.attention_norm;
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kPhi2Names[] = {
    {"self_attn.dense", "attn_output"}, {"mlp.fc1", "ffn_up"}, {"mlp.fc2", "ffn_down"}, {"model.final_layernorm", "output_norm"}};

void translate_phi2(FolderReader& in) {
  refuse_option(in, "qk_layernorm");
  translate_decoder(in, kPhi2Names);
}

}  // namespace

const Family kPhi2 = {"phi2", describe_phi2, {"phi"}, translate_phi2};

}  // namespace braid::model
