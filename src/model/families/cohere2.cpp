// Command R7B and A (Cohere 2024, 2025): three windowed layers to each full one, which knows no positions.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <vector>

namespace braid::model {
namespace {

ModelShape describe_cohere2(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  read_windows(keys, model, 4096, 4);
  for (LayerShape& layer : model.layers)
    if (layer.attention.window == 0) layer.attention.rotary = kNoRotary;
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
  const FolderSize size = translate_decoder(in);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  in.set("logit_scale", in.config.number({"logit_scale"}, 0.0625, 1e-6, 1e6));
  if (!in.config.has({"layer_types", "sliding_window_pattern", "_sliding_window_pattern"}))
    in.set("attention.sliding_window_pattern", std::uint64_t{4});
  if (in.has_key("attention.sliding_window")) return;
  in.set("attention.sliding_window", std::uint64_t{4096});  // of no layer
  in.set("attention.sliding_window_pattern", files::GgufArray{std::vector<bool>(static_cast<std::size_t>(size.layers), false)});
}

}  // namespace

const Family kCohere2 = {"cohere2", describe_cohere2, {"cohere2"}, translate_cohere2};

}  // namespace braid::model
