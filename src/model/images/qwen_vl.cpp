// Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5: images of any size, whose patches turn by their rows and columns, and squares of them through a norm and
// two products. Of the language model's rotary positions those of an image follow its rows and columns.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

constexpr double kQwenEpsilon = 1e-6;  // of all norms, whatever the configuration says

TowerShape qwen_tower(TowerFolder& in, const std::string& prefix, const TowerDefaults& defaults) {
  TowerShape tower = common_tower(in, defaults);
  tower.encoder.epsilon = kQwenEpsilon;
  tower.patches = linear_of(prefix + "patch_embed.proj", tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.rotation = PatchRotation{};
  if (auto rope = in.vision.part("rope_parameters")) tower.rotation->base = rope->number({"rope_theta"}, 10'000.0, 2.0, 1e12);
  tower.encoder.rotary.resize(1);
  tower.connector.side = static_cast<std::int32_t>(in.vision.count({"spatial_merge_size"}, 2, 1, 64));
  tower.connector.epsilon = kQwenEpsilon;
  tower.grid_positions = true;
  return tower;
}

// Attention's products, of which three lie in one tensor.
EncoderLayer& add_qwen_layer(TowerShape& tower, const std::string& own) {
  const std::int64_t width = tower.encoder.width;
  EncoderLayer& layer = tower.encoder.layers.emplace_back();
  layer.query = linear_of(own + "attn.qkv", width, width);
  layer.key = linear_of(own + "attn.qkv", width, width, width);
  layer.value = linear_of(own + "attn.qkv", width, width, 2 * width);
  layer.out = linear_of(own + "attn.proj", width, width);
  return layer;
}

std::vector<EncoderDense> two_products(const std::string& first, const std::string& second, std::int64_t inputs, std::int64_t outputs) {
  return {{linear_of(first, inputs, inputs), EncoderActivation::kGelu}, {linear_of(second, outputs, inputs), EncoderActivation::kNone}};
}

std::int64_t joined_width(const TowerShape& tower) { return tower.encoder.width * tower.connector.side * tower.connector.side; }

}  // namespace

TowerShape qwen2_vl_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("patch_embed.proj.weight");
  TowerShape tower =
      qwen_tower(in, prefix, {.width = 1280, .heads = 16, .activation = "quick_gelu", .patch = 14, .width_key = "embed_dim"});
  const std::int64_t width = tower.encoder.width;
  const auto inner = static_cast<std::int64_t>(static_cast<double>(width) * in.vision.number({"mlp_ratio"}, 4.0, 0.01, 1e3));
  const std::int64_t layers = in.vision.count({"depth"}, 32, 1, 1000);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}blocks.{}.", prefix, i);
    EncoderLayer& layer = add_qwen_layer(tower, own);
    layer.before_attention = norm_of(own + "norm1");
    layer.before_feed_forward = norm_of(own + "norm2");
    layer.up = linear_of(own + "mlp.fc1", inner, width);
    layer.down = linear_of(own + "mlp.fc2", width, inner);
  }
  tower.connector.before = norm_of(prefix + "merger.ln_q");
  tower.connector.dense = two_products(prefix + "merger.mlp.0", prefix + "merger.mlp.2", joined_width(tower), text_width(in));
  return tower;
}

TowerShape qwen25_vl_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("patch_embed.proj.weight");
  TowerShape tower = qwen_tower(in, prefix, {.width = 3584, .heads = 16, .activation = "silu", .patch = 14});
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 3420, 1, 1 << 20);
  const std::int64_t layers = in.vision.count({"depth"}, 32, 1, 1000);
  std::vector<std::int64_t> whole = {7, 15, 23, 31};
  if (in.vision.has({"fullatt_block_indexes"})) whole = in.vision.counts({"fullatt_block_indexes"}, std::nullopt, 0, 1000);
  tower.window = static_cast<std::int32_t>(in.vision.count({"window_size"}, 112, 1, 1 << 15) / tower.connector.side / tower.patch);
  if (tower.window < 1) in.vision.fail(ErrorCode::kUnsupported, "window_size is less than a square of patches");
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}blocks.{}.", prefix, i);
    EncoderLayer& layer = add_qwen_layer(tower, own);
    layer.within_parts = std::ranges::find(whole, i) == whole.end();
    layer.before_attention = rms_norm_of(own + "norm1", 0.0F);
    layer.before_feed_forward = rms_norm_of(own + "norm2", 0.0F);
    layer.gate = linear_of(own + "mlp.gate_proj", inner, width);
    layer.up = linear_of(own + "mlp.up_proj", inner, width);
    layer.down = linear_of(own + "mlp.down_proj", width, inner);
  }
  tower.connector.before = rms_norm_of(prefix + "merger.ln_q", 0.0F);
  tower.connector.dense = two_products(prefix + "merger.mlp.0", prefix + "merger.mlp.2", joined_width(tower), text_width(in));
  return tower;
}

// Qwen3-VL's, whatever else it hands on than the last layer's.
TowerShape qwen35_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("patch_embed.proj.weight");
  TowerShape tower = qwen_tower(in, prefix, {.width = 1152, .heads = 16});
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 4304, 1, 1 << 20);
  const std::int64_t layers = in.vision.count({"depth"}, 27, 1, 1000);
  tower.places = PatchPlaces::kBlended;
  tower.encoder.positions = prefix + "pos_embed.weight";
  tower.encoder.context = static_cast<std::int32_t>(in.vision.count({"num_position_embeddings"}, 2304, 1, 1 << 24));
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}blocks.{}.", prefix, i);
    EncoderLayer& layer = add_qwen_layer(tower, own);
    layer.before_attention = norm_of(own + "norm1");
    layer.before_feed_forward = norm_of(own + "norm2");
    layer.up = linear_of(own + "mlp.linear_fc1", inner, width);
    layer.down = linear_of(own + "mlp.linear_fc2", width, inner);
  }
  const std::int64_t joined = joined_width(tower);
  tower.connector.before = norm_of(prefix + "merger.norm");
  tower.connector.dense = two_products(prefix + "merger.linear_fc1", prefix + "merger.linear_fc2", joined, text_width(in));
  return tower;
}

TowerShape qwen3_vl_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("patch_embed.proj.weight");
  TowerShape tower = qwen35_tower(in);
  const std::int64_t joined = joined_width(tower);
  std::vector<std::int64_t> tapped = {8, 16, 24};
  if (in.vision.has({"deepstack_visual_indexes"})) tapped = in.vision.counts({"deepstack_visual_indexes"}, std::nullopt, 0, 1000);
  for (std::size_t i = 0; i < tapped.size(); ++i) {
    const std::string own = fmt::format("{}deepstack_merger_list.{}.", prefix, i);
    DeepConnector& deep = tower.deep.emplace_back();
    deep.layers = static_cast<std::int32_t>(tapped[i] + 1);
    if (std::cmp_greater_equal(tapped[i], tower.encoder.layers.size()))
      in.vision.fail(ErrorCode::kBadFile, fmt::format("deepstack_visual_indexes names layer {}", tapped[i]));
    deep.connector.side = tower.connector.side;
    deep.connector.epsilon = kQwenEpsilon;
    deep.connector.after = norm_of(own + "norm");
    deep.connector.dense = two_products(own + "linear_fc1", own + "linear_fc2", joined, text_width(in));
  }
  return tower;
}

}  // namespace braid::model
