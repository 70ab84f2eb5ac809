// Llama 1 to 3.x and Mistral. Queries and keys are stored so that rotated pairs are neighbours; some files have biases in attention.
#include "model/families/family.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {

ModelShape describe_llama(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  model.rotary.front().interleaved = true;
  for (LayerShape& layer : model.layers) {
    AttentionShape& attention = layer.attention;
    for (LinearShape* linear : {&attention.query, &attention.key, &attention.value, &attention.output}) linear->bias = Presence::kOptional;
  }
  return model;
}

}  // namespace braid::model
