// What a family is: from the keys of a file to the description of a model. Its quirks are in its own file and nowhere else.
#pragma once

#include "model/families/gguf_keys.h"
#include "model/model_shape.h"

#include <string_view>

namespace braid::model {

struct Family {
  std::string_view architecture;           // general.architecture
  ModelShape (*describe)(GgufKeys& keys);  // what has failed is in keys.error; the shape is then not used
};

ModelShape describe_gemma2(GgufKeys& keys);
ModelShape describe_gpt2(GgufKeys& keys);
ModelShape describe_llama(GgufKeys& keys);
ModelShape describe_qwen2(GgufKeys& keys);
ModelShape describe_qwen3(GgufKeys& keys);

}  // namespace braid::model
