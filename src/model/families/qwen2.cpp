// Qwen 2 and 2.5: queries, keys and values have biases.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_qwen2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  set_biases(model, Parts::kQueryKeyValue, Presence::kRequired);
  return model;
}

void translate_qwen2(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
}

}  // namespace

const Family kQwen2 = {"qwen2", describe_qwen2, {"qwen2"}, translate_qwen2};

}  // namespace braid::model
