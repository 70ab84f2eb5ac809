// ERNIE 4.5 (Baidu 2025): Llama whose folders, too, have rotated pairs side by side. Larger ones have experts, of which the first layers
// have none, and a network of all rows beside them.
#include "model/families/family.h"
#include "model/families/folder_experts.h"
#include "model/families/gguf_decoder.h"
#include "model/families/gguf_experts.h"

namespace braid::model {
namespace {

ModelShape describe_ernie45(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

ModelShape describe_ernie45_moe(GgufKeys& keys) {
  ModelShape model = describe_ernie45(keys);
  add_experts(keys, model, {.normalised = true});
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  model.output.bias = Presence::kOptional;
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kErnieNames[] = {{"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"}};

void translate_ernie45_moe(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in, kErnieNames);
  translate_expert_keys(in);
  in.set("interleave_moe_layer_step", static_cast<std::uint64_t>(in.config.count({"moe_layer_interval"}, 1, 1, kMaxLayers)));
  in.set("leading_dense_block_count", static_cast<std::uint64_t>(in.config.count({"moe_layer_start_index"}, 1, 0, kMaxLayers)));
  join_experts(in, size);
  set_shared_width(in, size);
  drop_later_layers(in, size);
  for (const std::string& name : in.of_part("exp_probs_b")) {  // [1, experts]
    files::GgufTensor correction = std::move(*in.extract(name));
    if (correction.shape.size() == 2 && correction.shape[1] == 1) correction.shape.pop_back();
    in.put(std::move(correction));
  }
}

void translate_ernie45(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
}

}  // namespace

const Family kErnie45 = {"ernie4_5", describe_ernie45, {"ernie4_5"}, translate_ernie45};
const Family kErnie45Moe = {"ernie4_5-moe", describe_ernie45_moe, {"ernie4_5_moe"}, translate_ernie45_moe};

}  // namespace braid::model
