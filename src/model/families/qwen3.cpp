// Qwen 3: a norm over each head of queries and keys before they are rotated.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_qwen3(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  add_query_norms(model, NormShape::Kind::kRms);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  return model;
}

void translate_qwen3(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
}

}  // namespace

const Family kQwen3 = {"qwen3", describe_qwen3, {"qwen3"}, translate_qwen3};

}  // namespace braid::model
