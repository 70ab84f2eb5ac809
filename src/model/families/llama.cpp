// Llama 1 to 3.x, Mistral, Mixtral, Ministral, InternLM3, SmolLM 1 and 2. Queries and keys are stored so that rotated pairs are neighbours; some files
// have biases.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_llama(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  if (keys.has("expert_count") && keys.count("expert_count", kMaxDimension) > 0) add_experts(keys, model, {.normalised = true});
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kMixtralNames[] = {{"block_sparse_moe.gate", "ffn_gate_inp"}};

void translate_llama(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kMixtralNames);
  pair_rotated(in, size);
  if (in.config.model_type() != "mixtral") return;
  translate_expert_keys(in);
  join_experts(in, size, {.module = "block_sparse_moe.experts", .gate = "w1", .up = "w3", .down = "w2"});
}

}  // namespace

const Family kLlama = {"llama", describe_llama, {"llama", "mistral", "ministral", "internlm3", "mixtral"}, translate_llama};

}  // namespace braid::model
