// EXAONE 3 and 3.5 (LG 2024): Llama with GPT's names, rotated halves apart.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_exaone(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model);
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kExaoneNames[] = {
    {"attn.attention.q_proj", "attn_q"},        {"attn.attention.k_proj", "attn_k"}, {"attn.attention.v_proj", "attn_v"},
    {"attn.attention.out_proj", "attn_output"}, {"mlp.c_fc_0", "ffn_gate"},          {"mlp.c_fc_1", "ffn_up"}};

void translate_exaone(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in, kExaoneNames);
  in.set("attention.layer_norm_rms_epsilon", in.config.number({"layer_norm_epsilon", "rms_norm_eps"}, 1e-5, 1e-12, 1.0));
}

}  // namespace

const Family kExaone = {"exaone", describe_exaone, {"exaone"}, translate_exaone};

}  // namespace braid::model
