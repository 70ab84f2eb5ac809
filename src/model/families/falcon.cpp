// Falcon 7B and 40B (TII 2023): layer norms, plain feed-forward networks of GELU, parallel branches that share a norm or, in the larger
// ones, have one each.
#include "model/families/family.h"
#include "model/families/folder_decoder.h"
#include "model/families/gguf_decoder.h"

#include <fmt/format.h>

namespace braid::model {
namespace {

ModelShape describe_falcon(GgufKeys& keys) {
  ModelShape model = layer_norm_decoder(keys);
  make_plain(model);
  read_activation(keys, model, {Activation::kGelu, Activation::kGeluTanh});
  set_biases(model, Parts::kAttention, Presence::kOptional);
  set_biases(model, Parts::kFeedForward, Presence::kOptional);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    LayerShape& layer = model.layers[i];
    layer.parallel = true;
    layer.feed_forward_norm = layer.attention_norm;
    const std::string second = layer_tensor(static_cast<std::int32_t>(i), "attn_norm_2");
    if (keys.file().tensor(second + ".weight") != nullptr) layer.attention_norm.name = second;
  }
  return model;
}

constexpr std::pair<std::string_view, std::string_view> kFalconNames[] = {{"ln_attn", "attn_norm_2"}, {"ln_mlp", "attn_norm"}};

void translate_falcon(FolderReader& in) {
  for (const std::string_view key : {"alibi"}) refuse_option(in, key);
  const bool grouped = in.config.flag({"new_decoder_architecture"}, false);
  const bool shared = in.config.flag({"multi_query"}, true);
  if (!in.config.flag({"parallel_attn"}, true))
    in.config.fail(ErrorCode::kUnsupported, "parallel_attn is false, which this build cannot compute");
  const FolderSize size = translate_sizes(in, KeyHeads::kAsManyAsHeads);
  const std::int64_t groups = in.config.count({"num_kv_heads", "n_head_kv"}, size.heads, 1, size.heads);
  const std::int32_t kv_heads = grouped ? static_cast<std::int32_t>(groups) : shared ? 1 : size.heads;
  if (size.heads % kv_heads != 0)
    in.config.fail(ErrorCode::kBadFile,
                   fmt::format("num_kv_heads is {}, expected a divisor of num_attention_heads = {}", kv_heads, size.heads));
  in.set("attention.head_count_kv", static_cast<std::uint64_t>(kv_heads));
  translate_rope(in, size, size.head_dim);
  in.name_tensors(kFalconNames);
  take_feed_forward_length(in);
  if (in.config.flag({"tie_word_embeddings"}, true)) in.remove("output.weight");
  if (!in.config.error) in.reorder("attn_qkv", ungrouped_rows(size.heads, kv_heads, size.head_dim));
}

}  // namespace

const Family kFalcon = {"falcon", describe_falcon, {"falcon", "RefinedWeb", "RefinedWebModel"}, translate_falcon};

}  // namespace braid::model
