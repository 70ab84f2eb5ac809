// Gemma 1 (2024): embeddings scaled, GeGLU. Files hold norm weights with the 1 added, folders without.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <cmath>

namespace braid::model {
namespace {

ModelShape describe_gemma(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.input.scale = std::sqrt(static_cast<float>(model.embedding));
  read_activation(keys, model, {Activation::kGeluTanh, Activation::kGelu});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  return model;
}

// The first configurations name gelu, and the code computes its approximation all the same.
void translate_gemma(FolderReader& in) {
  require_activation(in, {"gelu", "gelu_tanh"});
  translate_decoder(in);
  in.set("feed_forward.activation", std::string("gelu_tanh"));
  in.add_to_vectors("norm.weight", 1.0F);
}

}  // namespace

const Family kGemma = {"gemma", describe_gemma, {"gemma"}, translate_gemma};

}  // namespace braid::model
