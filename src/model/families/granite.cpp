// Granite 3 (IBM 2024): Llama with scales of embeddings, scores, branches and logits.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_granite(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  model.input.scale = static_cast<float>(keys.number("embedding_scale", 1.0, 1e-6, 1e6));
  model.output.scale = static_cast<float>(1.0 / keys.number("logit_scale", 1.0, 1e-6, 1e6));
  for (LayerShape& layer : model.layers) {
    layer.residual_scale = static_cast<float>(keys.number("residual_scale", 1.0, 1e-6, 1e6));
    layer.attention.scale = static_cast<float>(keys.number("attention.scale", layer.attention.scale, 1e-9, 1e6));
  }
  return model;
}

void translate_granite(FolderReader& in) {
  require_activation(in, {"silu"});
  pair_rotated(in, translate_decoder(in));
  in.set("embedding_scale", in.config.number({"embedding_multiplier"}, 1.0, 1e-6, 1e6));
  in.set("residual_scale", in.config.number({"residual_multiplier"}, 1.0, 1e-6, 1e6));
  in.set("logit_scale", in.config.number({"logits_scaling"}, 1.0, 1e-6, 1e6));
  in.set("attention.scale", in.config.number({"attention_multiplier"}, 1.0, 1e-9, 1e6));
}

}  // namespace

const Family kGranite = {"granite", describe_granite, {"granite"}, translate_granite};

}  // namespace braid::model
