// Llama 1 to 3.x, Mistral, Ministral, InternLM3, SmolLM 1 and 2. Queries and keys are stored so that rotated pairs are neighbours; some files
// have biases.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_llama(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  return model;
}

void translate_llama(FolderReader& in) {
  require_activation(in, {"silu"});
  pair_rotated(in, translate_decoder(in));
}

}  // namespace

const Family kLlama = {"llama", describe_llama, {"llama", "mistral", "ministral", "internlm3"}, translate_llama};

}  // namespace braid::model
