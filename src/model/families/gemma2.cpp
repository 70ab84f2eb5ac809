// Gemma 2 (2024): embeddings scaled, norms before and after each branch, GeGLU, caps on scores and on logits, a window in every second
// layer. Files hold norm weights with the 1 added.
#include "model/families/family.h"
#include "model/families/gguf_decoder.h"

#include <cmath>

namespace braid::model {
namespace {

// The published sizes differ in what scales a score, which no key says: 27B, alone with 46 layers, takes the width of the stream over the
// heads for the size of a head.
constexpr std::size_t kLayersOf27B = 46;

}  // namespace

ModelShape describe_gemma2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  const std::int32_t window = keys.count("attention.sliding_window", kMaxContext, 4096);
  set_windows(model, window, keys.count("attention.sliding_window_pattern", kMaxLayers, 2));
  model.input.scale = std::sqrt(static_cast<float>(model.embedding));
  model.output.cap = static_cast<float>(keys.number("final_logit_softcapping", 30.0, 0.0, 1e6));
  const auto score_cap = static_cast<float>(keys.number("attn_logit_softcapping", 50.0, 0.0, 1e6));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerShape& layer = model.layers[i];
    const auto index = static_cast<std::int32_t>(i);
    layer.attention.score_cap = score_cap;
    if (model.layers.size() == kLayersOf27B)
      layer.attention.scale = 1.0F / std::sqrt(static_cast<float>(model.embedding / layer.attention.heads));
    layer.feed_forward.kind = FeedForwardShape::Kind::kGeGlu;
    layer.attention_post_norm = layer.attention_norm;
    layer.attention_post_norm.name = layer_tensor(index, "post_attention_norm");
    layer.feed_forward_post_norm = layer.feed_forward_norm;
    layer.feed_forward_post_norm.name = layer_tensor(index, "post_ffw_norm");
  }
  return model;
}

}  // namespace braid::model
