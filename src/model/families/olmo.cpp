// OLMo 1 (Ai2 2024): layer norms without weights, and queries, keys and values held within bounds.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_olmo(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  model.rotary.front().interleaved = true;
  const auto clip = static_cast<float>(keys.number("attention.clamp_kqv", 0.0, 0.0, 1e6));
  model.output.norm.weight = model.output.norm.bias = Presence::kAbsent;
  for (LayerShape& layer : model.layers) {
    layer.attention.clip = clip;
    for (NormShape* norm : {&layer.attention_norm, &layer.feed_forward_norm}) norm->weight = norm->bias = Presence::kAbsent;
  }
  set_biases(model, Parts::kAttention, Presence::kOptional);
  return model;
}

void translate_olmo(FolderReader& in) {
  require_activation(in, {"silu"});
  pair_rotated(in, translate_decoder(in));
  in.set("attention.layer_norm_epsilon", 1e-5);
  in.set("attention.clamp_kqv", in.config.number({"clip_qkv"}, 0.0, 0.0, 1e6));
}

}  // namespace

const Family kOlmo = {"olmo", describe_olmo, {"olmo"}, translate_olmo};

}  // namespace braid::model
