// GLM-4 (2024, 2025): neighbouring pairs of half a head rotate, gate and up are joined. The models of 2025 have norms behind the branches,
// too.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_glm(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kQueryKeyValue, Presence::kOptional);
  return model;
}

ModelShape describe_glm4(GgufKeys& keys) {
  ModelShape model = describe_glm(keys);
  add_post_norms(model, "post_attention_norm", "post_ffw_norm");
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kGlm4Names[] = {{"post_self_attn_layernorm", "post_attention_norm"},
                                                                        {"post_mlp_layernorm", "post_ffw_norm"}};

void translate_glm4(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in, kGlm4Names);
}

}  // namespace

const Family kChatGlm = {"chatglm", describe_glm, {"glm"}, translate_glm4};
const Family kGlm4 = {"glm4", describe_glm4, {"glm4"}, translate_glm4};

}  // namespace braid::model
