// MiniCPM 3 (OpenBMB 2024): attention to latents, whose rotated halves lie apart, with MiniCPM's scales of embeddings, branches and logits.
#include "model/families/family.h"
#include "model/families/gguf_decoder.h"
#include "model/families/latent_decoder.h"

#include <algorithm>
#include <cmath>

namespace braid::model {
namespace {

// What files of llama.cpp, which have no scales, mean: MiniCPM3-4B's.
constexpr double kEmbeddingScale3 = 12.0;
constexpr double kDepthScale3 = 1.4;
constexpr double kBaseWidth3 = 256.0;

ModelShape describe_minicpm3(GgufKeys& keys) {
  ModelShape model = latent_decoder(keys);
  if (keys.error) return model;
  model.rotary.front().interleaved = false;
  read_long_rope(keys, model);
  const double branch = kDepthScale3 / std::sqrt(static_cast<double>(model.layers.size()));
  model.input.scale = static_cast<float>(keys.number("embedding_scale", kEmbeddingScale3, 1e-6, 1e6));
  model.output.scale = static_cast<float>(1.0 / keys.number("logit_scale", model.embedding / kBaseWidth3, 1e-6, 1e6));
  for (LayerShape& layer : model.layers) layer.residual_scale = static_cast<float>(keys.number("residual_scale", branch, 1e-6, 1e6));
  return model;
}

void translate_minicpm3(FolderReader& in) {
  require_activation(in, {"silu"});
  const LatentFolder latent = translate_latent_decoder(in);
  if (in.config.error) return;
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  const double depth = std::sqrt(static_cast<double>(latent.size.layers));
  in.set("embedding_scale", in.config.number({"scale_emb"}, kEmbeddingScale3, 1e-6, 1e6));
  in.set("residual_scale", in.config.number({"scale_depth"}, kDepthScale3, 1e-6, 1e6) / depth);
  in.set("logit_scale", latent.size.embedding / in.config.number({"dim_model_base"}, kBaseWidth3, 1.0, 1e6));
  part_latent_heads(in, latent.heads);
}

}  // namespace

const Family kMinicpm3 = {"minicpm3", describe_minicpm3, {"minicpm3"}, translate_minicpm3};

}  // namespace braid::model
