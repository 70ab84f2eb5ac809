// Qwen 2 and 2.5: queries, keys and values have biases.
#include "model/families/family.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {

ModelShape describe_qwen2(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  read_windows_and_cap(keys, model);
  for (LayerShape& layer : model.layers)
    for (LinearShape* linear : {&layer.attention.query, &layer.attention.key, &layer.attention.value}) linear->bias = Presence::kRequired;
  return model;
}

}  // namespace braid::model
