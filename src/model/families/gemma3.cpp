// Gemma 3 (2025): Gemma 2 without caps, with norms over the heads of queries and keys, five windowed layers to each full one, and another
// base of angles in the windowed ones. Files hold norm weights with the 1 added.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <cmath>

namespace braid::model {
namespace {

// As for Gemma 2's 27B.
constexpr std::size_t kLayersOfLargest = 62;

ModelShape describe_gemma3(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model, 1024, 6);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  add_query_norms(model, NormShape::Kind::kRms);
  read_activation(keys, model, {Activation::kGeluTanh});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  model.input.scale = std::sqrt(static_cast<float>(model.embedding));
  model.output.cap = static_cast<float>(keys.number("final_logit_softcapping", 0.0, 0.0, 1e6));
  RopeParameters local;
  local.base = keys.number("rope.freq_base_swa", 10000.0, 2.0, 1e12);
  local.rotated = model.rotary.front().rotated;
  model.rotary.push_back(local);
  for (LayerShape& layer : model.layers) {
    AttentionShape& attention = layer.attention;
    if (attention.window > 0) attention.rotary = 1;
    if (model.layers.size() == kLayersOfLargest) attention.scale = 1.0F / std::sqrt(static_cast<float>(model.embedding / attention.heads));
    attention.scale = static_cast<float>(keys.number("attention.scale", attention.scale, 1e-6, 1e3));
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kGemma3Names[] = {{"post_attention_layernorm", "post_attention_norm"},
                                                                          {"pre_feedforward_layernorm", "ffn_norm"},
                                                                          {"post_feedforward_layernorm", "post_ffw_norm"}};

void translate_gemma3(FolderReader& in) {
  require_activation(in, {"gelu_tanh"});
  refuse_option(in, "use_bidirectional_attention");
  refuse_option(in, "attn_logit_softcapping");
  translate_decoder(in, kGemma3Names);
  in.add_to_vectors("norm.weight", 1.0F);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  in.set("final_logit_softcapping", in.config.number({"final_logit_softcapping"}, 0.0, 0.0, 1e6));
  in.set("attention.scale", 1.0 / std::sqrt(in.config.number({"query_pre_attn_scalar"}, 256.0, 1e-3, 1e6)));
  // Before layer_types these were matters of the code.
  if (!in.config.has({"layer_types", "sliding_window_pattern", "_sliding_window_pattern"}))
    in.set("attention.sliding_window_pattern", std::uint64_t{6});
  if (!in.config.has({"rope_theta", "rope_parameters"})) in.set("rope.freq_base", 1e6);
}

}  // namespace

const Family kGemma3 = {"gemma3", describe_gemma3, {"gemma3_text", "gemma3"}, translate_gemma3};

}  // namespace braid::model
