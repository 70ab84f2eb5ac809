// Phi-3, 3.5 and 4 (Microsoft 2024): Llama with joined products, windows, and long contexts by LongRoPE.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_phi3(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model);
  read_long_rope(keys, model);
  return model;
}

void translate_phi3(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in);
}

}  // namespace

const Family kPhi3 = {"phi3", describe_phi3, {"phi3"}, translate_phi3};

}  // namespace braid::model
