// Nemotron and Minitron (NVIDIA 2024): layer norms, squared ReLU, part of a head rotates. Files hold norm weights with the 1 added.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_nemotron(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  make_plain(model);
  read_activation(keys, model, {Activation::kReluSquared});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

void translate_nemotron(FolderReader& in) {
  const FolderSize size = translate_sizes(in);
  translate_rope(in, size, rotated_of(in, size, 0.5));
  in.name_tensors({});
  if (in.config.flag({"tie_word_embeddings"}, false)) in.remove("output.weight");
  in.add_to_vectors("norm.weight", 1.0F);
}

}  // namespace

const Family kNemotron = {"nemotron", describe_nemotron, {"nemotron"}, translate_nemotron};

}  // namespace braid::model
