// Seed-OSS (ByteDance 2025): Llama with biases of queries, keys and values. Files call the norm before the feed-forward network by the
// place behind attention.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

namespace braid::model {
namespace {

ModelShape describe_seed_oss(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    model.layers[i].feed_forward_norm.name = layer_tensor(static_cast<std::int32_t>(i), "post_attention_norm");
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kSeedNames[] = {{"post_attention_layernorm", "post_attention_norm"}};

void translate_seed_oss(FolderReader& in) {
  require_activation(in, {"silu"});
  translate_decoder(in, kSeedNames);
}

}  // namespace

const Family kSeedOss = {"seed_oss", describe_seed_oss, {"seed_oss"}, translate_seed_oss};

}  // namespace braid::model
