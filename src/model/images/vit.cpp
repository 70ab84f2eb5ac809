// CLIP's and SigLIP's vision transformers: layers with norms before each branch, and a learned vector for each place.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <fmt/format.h>

namespace braid::model {
namespace {

constexpr std::string_view kPatches = "embeddings.patch_embedding.weight";

std::int64_t layers_of_vision(TowerFolder& in, std::int64_t fallback) { return in.vision.count({"num_hidden_layers"}, fallback, 1, 1000); }

}  // namespace

void add_vit_layers(TowerShape& tower, TowerFolder& in, const std::string& prefix, std::int64_t layers) {
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 3072, 1, 1 << 20);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.layers.{}.", prefix, i);
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = norm_of(own + "layer_norm1");
    layer.query = linear_of(own + "self_attn.q_proj", width, width);
    layer.key = linear_of(own + "self_attn.k_proj", width, width);
    layer.value = linear_of(own + "self_attn.v_proj", width, width);
    layer.out = linear_of(own + "self_attn.out_proj", width, width);
    layer.before_feed_forward = norm_of(own + "layer_norm2");
    layer.up = linear_of(own + "mlp.fc1", inner, width);
    layer.down = linear_of(own + "mlp.fc2", width, inner);
  }
}

TowerShape clip_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of(kPatches);
  TowerShape tower = common_tower(in, {.activation = "quick_gelu", .epsilon = 1e-5, .patch = 32});
  const std::int64_t side = patches_of_side(tower, in, 224);
  tower.patches = linear_of(prefix + "embeddings.patch_embedding", tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.first = prefix + "embeddings.class_embedding";
  tower.places = PatchPlaces::kEach;
  tower.encoder.positions = prefix + "embeddings.position_embedding.weight";
  tower.encoder.first_position = 1;
  tower.encoder.context = static_cast<std::int32_t>(side * side);
  tower.encoder.embedding_norm = norm_of(prefix + (in.has(prefix + "pre_layrnorm.weight") ? "pre_layrnorm" : "pre_layernorm"));
  add_vit_layers(tower, in, prefix, feature_layers(in, layers_of_vision(in, 12), -2));
  return tower;
}

TowerShape siglip_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of(kPatches);
  TowerShape tower = common_tower(in, {});
  const std::int64_t side = patches_of_side(tower, in, 224);
  tower.patches = linear_of(prefix + "embeddings.patch_embedding", tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.places = PatchPlaces::kEach;
  tower.encoder.positions = prefix + "embeddings.position_embedding.weight";
  tower.encoder.context = static_cast<std::int32_t>(side * side);
  add_vit_layers(tower, in, prefix, layers_of_vision(in, 12));
  tower.encoder.final_norm = norm_of(prefix + "post_layernorm");
  return tower;
}

}  // namespace braid::model
