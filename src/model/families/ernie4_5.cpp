// ERNIE 4.5 (Baidu 2025): Llama whose folders, too, have rotated pairs side by side.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_ernie45(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

void translate_ernie45(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
}

}  // namespace

const Family kErnie45 = {"ernie4_5", describe_ernie45, {"ernie4_5"}, translate_ernie45};

}  // namespace braid::model
