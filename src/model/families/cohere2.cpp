// Command R7B and A (Cohere 2024, 2025): three windowed layers to each full one, which knows no positions.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_cohere2(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  read_windows(keys, model, 4096, 4);
  drop_rotation_of_full_layers(model);
  model.rotary.front().interleaved = true;
  model.output.norm.bias = Presence::kAbsent;
  model.output.scale = static_cast<float>(keys.number("logit_scale", 1.0, 1e-6, 1e6));
  for (LayerShape& layer : model.layers) {
    layer.parallel = true;
    layer.attention_norm.bias = Presence::kAbsent;
    layer.feed_forward_norm = layer.attention_norm;
  }
  set_biases(model, Parts::kAttention, Presence::kOptional);
  return model;
}

void translate_cohere2(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
  in.remove("output.weight");  // always the embedding
  in.set("logit_scale", in.config.number({"logit_scale"}, 0.0625, 1e-6, 1e6));
  if (!in.config.has({"layer_types", "sliding_window_pattern", "_sliding_window_pattern"}))
    in.set("attention.sliding_window_pattern", std::uint64_t{4});
}

}  // namespace

const Family kCohere2 = {"cohere2", describe_cohere2, {"cohere2"}, translate_cohere2};

}  // namespace braid::model
