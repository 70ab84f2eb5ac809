// Gemma 2 (2024): embeddings scaled, norms before and after each branch, GeGLU, caps on scores and on logits, a window in every second
// layer. Files hold norm weights with the 1 added.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <cmath>

namespace braid::model {
namespace {

// The published sizes differ in what scales a score, which no key of older files says: 27B, alone with 46 layers, takes the width of the
// stream over the heads for the size of a head.
constexpr std::size_t kLayersOf27B = 46;

ModelShape describe_gemma2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model, 4096, 2);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  read_activation(keys, model, {Activation::kGeluTanh});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  model.input.scale = std::sqrt(static_cast<float>(model.embedding));
  model.output.cap = static_cast<float>(keys.number("final_logit_softcapping", 30.0, 0.0, 1e6));
  const auto score_cap = static_cast<float>(keys.number("attn_logit_softcapping", 50.0, 0.0, 1e6));
  for (LayerShape& layer : model.layers) {
    AttentionShape& attention = layer.attention;
    attention.score_cap = score_cap;
    if (model.layers.size() == kLayersOf27B) attention.scale = 1.0F / std::sqrt(static_cast<float>(model.embedding / attention.heads));
    attention.scale = static_cast<float>(keys.number("attention.scale", attention.scale, 1e-6, 1e3));
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"post_attention_layernorm", "post_attention_norm"},
                                                                    {"pre_feedforward_layernorm", "ffn_norm"},
                                                                    {"post_feedforward_layernorm", "post_ffw_norm"}};

void translate_gemma2(FolderReader& in) {
  require_activation(in, {"gelu_tanh"});
  translate_decoder(in, kNames);
  in.add_to_vectors("norm.weight", 1.0F);
  for (const std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"})
    in.set(key, in.config.number({key}, 0.0, 0.0, 1e6));
  in.set("attention.scale", 1.0 / std::sqrt(in.config.number({"query_pre_attn_scalar"}, 256.0, 1e-3, 1e6)));
  // Before layer_types, every second layer's window is a matter of the code.
  if (!in.config.has({"layer_types", "sliding_window_pattern", "_sliding_window_pattern"}))
    in.set("attention.sliding_window_pattern", std::uint64_t{2});
}

}  // namespace

const Family kGemma2 = {"gemma2", describe_gemma2, {"gemma2"}, translate_gemma2};

}  // namespace braid::model
