// OLMo 2 and 3 (Ai2 2024, 2025): norms behind the branches instead of before them, and over all queries and all keys. OLMo 3 has windows,
// in whose layers angles are not stretched.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_olmo2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model, 0, 4);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  add_query_norms(model, NormShape::Kind::kRms, true);
  drop_pre_norms(model);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  RopeParameters plain;
  plain.base = model.rotary.front().base;
  plain.rotated = model.rotary.front().rotated;
  model.rotary.push_back(plain);
  for (LayerShape& layer : model.layers)
    if (layer.attention.window > 0) layer.attention.rotary = 1;
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kOlmo2Names[] = {{"post_attention_layernorm", "post_attention_norm"},
                                                                         {"post_feedforward_layernorm", "post_ffw_norm"}};

void translate_olmo2(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in, kOlmo2Names);
}

}  // namespace

const Family kOlmo2 = {"olmo2", describe_olmo2, {"olmo2", "olmo3"}, translate_olmo2};

}  // namespace braid::model
