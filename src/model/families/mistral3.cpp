// Ministral 3 and Mistral Small 3.1 and later: Llama with queries that grow with the logarithm of their position.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_mistral3(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows(keys, model);
  model.rotary.front().interleaved = true;
  const auto growth = static_cast<float>(keys.number("attention.temperature_scale", 0.0, 0.0, 1e3));
  for (LayerShape& layer : model.layers) {
    layer.attention.growth = growth;
    layer.attention.growth_period = std::max(1, model.rotary.front().original_context);
  }
  return model;
}

void translate_mistral3(FolderReader& in) {
  require_activation(in, {"silu"});
  pair_rotated(in, translate_decoder(in));
}

}  // namespace

const Family kMistral3 = {"mistral3", describe_mistral3, {"ministral3", "mistral3"}, translate_mistral3};

}  // namespace braid::model
