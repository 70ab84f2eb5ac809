// EXAONE 4 (LG 2025): norms behind the branches instead of before them, and over heads; three windowed layers to each full one, which then
// knows no positions.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_exaone4(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model, 0, 4);
  drop_rotation_of_full_layers(model);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  add_query_norms(model, NormShape::Kind::kRms);
  drop_pre_norms(model);
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kExaone4Names[] = {{"post_attention_layernorm", "post_attention_norm"},
                                                                           {"post_feedforward_layernorm", "post_ffw_norm"}};

void translate_exaone4(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in, kExaone4Names);
}

}  // namespace

const Family kExaone4 = {"exaone4", describe_exaone4, {"exaone4"}, translate_exaone4};

}  // namespace braid::model
