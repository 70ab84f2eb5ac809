// GPT-NeoX (EleutherAI 2022) and Pythia: layer norms, biases, part of a head rotates, and mostly parallel branches, each with a norm of its
// own.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_gpt_neox(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  make_plain(model);
  read_activation(keys, model, {Activation::kGelu, Activation::kGeluTanh, Activation::kRelu});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kRequired);
  const bool parallel = keys.flag("use_parallel_residual", true);
  for (LayerShape& layer : model.layers) layer.parallel = parallel;
  return model;
}

void translate_gpt_neox(FolderReader& in) {
  const FolderSize size = translate_sizes(in, KeyHeads::kAsManyAsHeads);
  translate_rope(in, size, rotated_of(in, size, 0.25));
  in.name_tensors({});
  in.set("use_parallel_residual", in.config.flag({"use_parallel_residual"}, true));
  if (!in.config.error) in.reorder("attn_qkv", ungrouped_rows(size.heads, size.heads, size.head_dim));
}

}  // namespace

const Family kGptNeox = {"gptneox", describe_gpt_neox, {"gpt_neox"}, translate_gpt_neox};

}  // namespace braid::model
