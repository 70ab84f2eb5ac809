// MiniCPM 1 and 2 (OpenBMB 2024): Llama with scales of embeddings, branches and logits.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <cmath>

namespace braid::model {
namespace {

// What older files mean that have no scales: MiniCPM-2B's.
constexpr double kEmbeddingScale = 12.0;
constexpr double kDepthScale = 1.4;
constexpr double kBaseWidth = 256.0;

ModelShape describe_minicpm(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  model.rotary.front().interleaved = true;
  set_biases(model, Parts::kAttention, Presence::kOptional);
  const double branch = kDepthScale / std::sqrt(static_cast<double>(model.layers.size()));
  model.input.scale = static_cast<float>(keys.number("embedding_scale", kEmbeddingScale, 1e-6, 1e6));
  model.output.scale = static_cast<float>(1.0 / keys.number("logit_scale", model.embedding / kBaseWidth, 1e-6, 1e6));
  for (LayerShape& layer : model.layers) layer.residual_scale = static_cast<float>(keys.number("residual_scale", branch, 1e-6, 1e6));
  return model;
}

void translate_minicpm(FolderReader& in) {
  require_activation(in, {"silu"});
  const FolderSize size = translate_decoder(in);
  pair_rotated(in, size);
  in.set("embedding_scale", in.config.number({"scale_emb"}, 1.0, 1e-6, 1e6));
  in.set("residual_scale", in.config.number({"scale_depth"}, 1.0, 1e-6, 1e6) / std::sqrt(static_cast<double>(size.layers)));
  in.set("logit_scale", size.embedding / in.config.number({"dim_model_base"}, size.embedding, 1.0, 1e6));
}

}  // namespace

const Family kMinicpm = {"minicpm", describe_minicpm, {"minicpm"}, translate_minicpm};

}  // namespace braid::model
