// Qwen 3 with experts (Alibaba 2025).
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_qwen3moe(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  add_experts(keys, model, {.normalised = true});
  return model;
}

void translate_qwen3moe(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in);
  translate_expert_keys(in);
  translate_router(in, false);
  join_experts(in, size);
}

}  // namespace

const Family kQwen3Moe = {"qwen3moe", describe_qwen3moe, {"qwen3_moe"}, translate_qwen3moe};

}  // namespace braid::model
