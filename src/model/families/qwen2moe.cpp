// Qwen 1.5 and 2 with experts (Alibaba 2024): a network of all rows beside them, which counts by a gate of its own.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_qwen2moe(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  set_biases(model, Parts::kQueryKeyValue, Presence::kOptional);
  add_experts(keys, model, {});
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kQwen2MoeNames[] = {{"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                                                                            {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
                                                                            {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
                                                                            {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}};

void translate_qwen2moe(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kQwen2MoeNames);
  translate_expert_keys(in);
  translate_router(in, false);
  join_experts(in, size);
  set_shared_width(in, size);
  drop_dimension(in, "ffn_gate_inp_shexp");
}

}  // namespace

const Family kQwen2Moe = {"qwen2moe", describe_qwen2moe, {"qwen2_moe"}, translate_qwen2moe};

}  // namespace braid::model
