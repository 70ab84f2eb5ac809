// StarCoder 2 (BigCode 2024): layer norms, biases everywhere, plain feed-forward networks of GELU, windows.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_starcoder2(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  read_windows(keys, model);
  make_plain(model);
  read_activation(keys, model, {Activation::kGeluTanh, Activation::kGelu});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

void translate_starcoder2(FolderReader& in) { translate_decoder(in); }

}  // namespace

const Family kStarcoder2 = {"starcoder2", describe_starcoder2, {"starcoder2"}, translate_starcoder2};

}  // namespace braid::model
