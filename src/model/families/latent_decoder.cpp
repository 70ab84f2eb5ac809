#include "model/families/latent_decoder.h"

#include "model/deterministic_math.h"
#include "model/families/gguf_decoder.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

struct LatentSize {
  std::int32_t rank = 1;
  std::int32_t query_rank = 0;  // 0: queries are not narrowed
  std::int32_t head = 2;        // of a query
  std::int32_t rotated = 2;     // of these
  std::int32_t value = 1;
};

void bend_attention(LayerShape& layer, std::int32_t index, const LatentSize& size) {
  AttentionShape& attention = layer.attention;
  const auto linear = [&](std::string_view part, std::int64_t inputs, std::int64_t outputs) {
    return LinearShape{.name = layer_tensor(index, part), .inputs = inputs, .outputs = outputs};
  };
  const auto norm = [&](std::string_view part, std::int32_t width) {
    NormShape shape = layer.attention_norm;
    shape.name = layer_tensor(index, part);
    shape.width = width;
    return shape;
  };
  const std::int64_t embedding = layer.attention_norm.width;
  LatentShape latent{.rank = size.rank, .plain = size.head - size.rotated, .rotated = size.rotated, .value_dim = size.value};
  const std::int64_t queries = std::int64_t{attention.heads} * size.head;
  if (size.query_rank > 0) {
    latent.query_down = linear("attn_q_a", embedding, size.query_rank);
    latent.query_down_norm = norm("attn_q_a_norm", size.query_rank);
    attention.query = linear("attn_q_b", size.query_rank, queries);
  } else {
    attention.query = linear("attn_q", embedding, queries);
  }
  latent.norm = norm("attn_kv_a_norm", size.rank);
  latent.key_up = linear("attn_k_b", latent.plain, size.rank);
  latent.value_up = linear("attn_v_b", size.rank, size.value);
  attention.kv_heads = 1;
  attention.head_dim = size.rank + size.rotated;
  attention.key = linear("attn_kv_a_mqa", embedding, attention.head_dim);
  attention.value = {};
  attention.output = linear("attn_output", std::int64_t{attention.heads} * size.value, embedding);
  latent.query_down.bias = attention.key.bias = attention.output.bias = Presence::kOptional;
  attention.latent = std::move(latent);
}

// What stretching the context makes of scores. Files without a factor of their own for angles have the same for both, so that it cancels there.
float read_score_scale(GgufKeys& keys, RopeParameters& rope, std::int32_t head) {
  const double plain = 1.0 / std::sqrt(static_cast<double>(head));
  if (rope.scaling != RopeScaling::kYarn || !keys.has("rope.scaling.yarn_log_multiplier")) return static_cast<float>(plain);
  const double growth = std::max(0.0, fixed_log(std::max(1.0, rope.factor)));
  if (!keys.has("rope.scaling.attn_factor")) rope.attention_factor = 1.0 / (1.0 + 0.1 * growth);
  const double magnitude = 1.0 + keys.number("rope.scaling.yarn_log_multiplier", 0.0, 0.0, 1e3) * growth;
  return static_cast<float>(plain * magnitude * magnitude);
}

constexpr std::pair<std::string_view, std::string_view> kDeepSeekNames[] = {
    {"self_attn.q_a_proj", "attn_q_a"},   {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},   {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_b_proj", "attn_kv_b"}, {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
};

}  // namespace

ModelShape latent_decoder(GgufKeys& keys) {
  ModelShape model = rms_decoder(keys);
  RopeParameters& rope = model.rotary.front();
  rope.interleaved = true;
  const LatentSize size{.rank = keys.size("attention.kv_lora_rank", std::nullopt, kMaxHeadDim / 2),
                        .query_rank = keys.count("attention.q_lora_rank", kMaxDimension),
                        .head = keys.size("attention.key_length_mla", std::nullopt, kMaxHeadDim),
                        .rotated = rope.rotated,
                        .value = keys.size("attention.value_length_mla", std::nullopt, kMaxHeadDim)};
  if (!keys.error && size.head <= size.rotated)
    keys.fail(ErrorCode::kBadFile, fmt::format("{} is {}, expected more than the {} that rotate", keys.full("attention.key_length_mla"),
                                               size.head, size.rotated));
  if (keys.error) return model;
  const float scale = read_score_scale(keys, rope, size.head);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    bend_attention(model.layers[i], static_cast<std::int32_t>(i), size);
    model.layers[i].attention.scale = scale;
  }
  return model;
}

LatentFolder translate_latent_decoder(FolderReader& in) {
  LatentFolder folder;
  folder.size = translate_sizes(in);
  const auto extent = [&](std::string_view name, std::optional<std::int64_t> fallback = std::nullopt) {
    return static_cast<std::int32_t>(in.config.count({name}, fallback, 1, kMaxHeadDim));
  };
  const std::int32_t rank = extent("kv_lora_rank");
  const std::int32_t plain = extent("qk_nope_head_dim");
  const std::int32_t rotated = extent("qk_rope_head_dim");
  const std::int32_t value = extent("v_head_dim", std::max(1, folder.size.embedding / std::max(1, folder.size.heads)));
  folder.heads = {folder.size.heads, plain, value};
  if (in.config.error) return folder;
  translate_rope(in, folder.size, rotated);
  const auto set = [&](std::string_view key, std::int64_t number) { in.set(key, static_cast<std::uint64_t>(number)); };
  set("rope.dimension_count", rotated);
  set("attention.head_count_kv", 1);
  set("attention.kv_lora_rank", rank);
  if (in.config.has({"q_lora_rank"})) set("attention.q_lora_rank", in.config.count({"q_lora_rank"}, 0, 0, kMaxDimension));
  set("attention.key_length", rank + rotated);
  set("attention.value_length", rank);
  set("attention.key_length_mla", plain + rotated);
  set("attention.value_length_mla", value);
  in.name_tensors(kDeepSeekNames);
  if (in.config.flag({"tie_word_embeddings"}, false) && in.has("token_embd.weight")) in.remove("output.weight");
  return folder;
}

void part_latent_heads(FolderReader& in, const LatentHeads& heads) {
  for (const std::string& name : in.of_part(kLatentHeads)) {
    Result<PartedHeads> parted = part_heads(std::move(*in.extract(name)), heads);
    if (!parted) return in.config.fail(parted.error().code, parted.error().message);
    in.put_owned(std::move(parted->keys), std::move(parted->key_bytes));
    in.put(std::move(parted->values));
  }
}

}  // namespace braid::model
