// InternVL 2, 2.5 and 3: a ViT whose branches are scaled for each channel, and squares of patches through a norm and two products. Its folders
// are transformers' ("internvl") or those of its own code ("internvl_chat"), which has the same tensors under other names.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <cmath>
#include <fmt/format.h>

namespace braid::model {
namespace {

struct InternNames {
  std::string_view layers, query_norm, key_norm, out, first_norm, second_norm, first_scale, second_scale;
  std::string_view qkv;  // queries, keys and values in one; or empty
};

constexpr InternNames kTransformersNames = {.layers = "encoder.layer",
                                            .query_norm = "attention.q_norm",
                                            .key_norm = "attention.k_norm",
                                            .out = "attention.projection_layer",
                                            .first_norm = "layernorm_before",
                                            .second_norm = "layernorm_after",
                                            .first_scale = "lambda_1",
                                            .second_scale = "lambda_2",
                                            .qkv = {}};
constexpr InternNames kOwnNames = {.layers = "encoder.layers",
                                   .query_norm = "attn.q_norm",
                                   .key_norm = "attn.k_norm",
                                   .out = "attn.proj",
                                   .first_norm = "norm1",
                                   .second_norm = "norm2",
                                   .first_scale = "ls1",
                                   .second_scale = "ls2",
                                   .qkv = "attn.qkv"};

// A branch's last product counts by the channel.
void scale_rows(TowerShape& tower, const std::string& product, const std::string& by) {
  for (const char* part : {".weight", ".bias"})
    tower.forms.push_back({.name = product + part, .kind = TensorForm::Kind::kScaledRows, .by = by});
}

void add_attention(EncoderLayer& layer, const std::string& own, const InternNames& names, std::int64_t width) {
  const std::string joined = own + std::string(names.qkv);
  const bool apart = names.qkv.empty();
  layer.query = linear_of(apart ? own + "attention.q_proj" : joined, width, width);
  layer.key = linear_of(apart ? own + "attention.k_proj" : joined, width, width, apart ? 0 : width);
  layer.value = linear_of(apart ? own + "attention.v_proj" : joined, width, width, apart ? 0 : 2 * width);
  layer.out = linear_of(own + std::string(names.out), width, width);
}

// The larger tower (InternViT 6B) has norms without means, also of all queries and of all keys.
void add_intern_layers(TowerShape& tower, TowerFolder& in, const std::string& prefix, const InternNames& names, std::int64_t layers,
                       const TowerDefaults& defaults) {
  const bool is_own = !names.qkv.empty();
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 4 * defaults.width, 1, 1 << 20);
  const std::string norm_type = in.vision.text({"norm_type"}, is_own ? "rms_norm" : "layer_norm");
  if (norm_type != "layer_norm" && norm_type != "rms_norm")
    in.vision.fail(ErrorCode::kUnsupported, fmt::format("norm_type is \"{}\", expected \"layer_norm\" or \"rms_norm\"", norm_type));
  const auto norm = [&](const std::string& name) { return norm_type == "rms_norm" ? rms_norm_of(name, 0.0F) : norm_of(name); };
  tower.encoder.norms_all_heads = in.vision.flag({is_own ? "qk_normalization" : "use_qk_norm"}, is_own);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}{}.{}.", prefix, names.layers, i);
    const auto called = [&](std::string_view name) { return own + std::string(name); };
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = norm(called(names.first_norm));
    add_attention(layer, own, names, width);
    if (tower.encoder.norms_all_heads) {
      layer.query_norm = rms_norm_of(called(names.query_norm), 0.0F);
      layer.key_norm = rms_norm_of(called(names.key_norm), 0.0F);
    }
    layer.before_feed_forward = norm(called(names.second_norm));
    layer.up = linear_of(own + "mlp.fc1", inner, width);
    layer.down = linear_of(own + "mlp.fc2", width, inner);
    scale_rows(tower, called(names.out), called(names.first_scale));
    scale_rows(tower, own + "mlp.fc2", called(names.second_scale));
  }
}

void add_patches(TowerShape& tower, const std::string& patches, const std::string& first, const std::string& places, std::int64_t side) {
  tower.patches = linear_of(patches, tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.first = first;
  tower.places = places.empty() ? PatchPlaces::kNone : PatchPlaces::kEach;
  tower.encoder.positions = places;
  tower.encoder.first_position = places.empty() ? 0 : 1;
  tower.encoder.context = static_cast<std::int32_t>(side * side);
}

// `shown`: patches of a tile's side.
void add_connector(TowerShape& tower, TowerFolder& in, const std::string& norm, const std::string& first, const std::string& second,
                   std::int64_t shown) {
  const double ratio = in.whole.number({"downsample_ratio"}, 0.5, 1e-3, 1.0);
  tower.connector.side = static_cast<std::int32_t>(std::lround(1.0 / ratio));
  if (shown % tower.connector.side != 0) in.whole.fail(ErrorCode::kBadFile, "downsample_ratio does not divide the tower's patches");
  tower.connector.after = norm_of(norm);
  add_two_layers(tower, in, first, second, tower.encoder.width * tower.connector.side * tower.connector.side, text_width(in));
}

}  // namespace

TowerShape internvl_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("embeddings.patch_embeddings.projection.weight");
  const TowerDefaults defaults = {.width = 1024, .heads = 16, .activation = "gelu", .patch = 14};
  TowerShape tower = common_tower(in, defaults);
  if (in.whole.text({"vision_feature_select_strategy"}, "default") != "default")
    in.whole.fail(ErrorCode::kUnsupported, "vision_feature_select_strategy is not \"default\", which this build cannot compute");
  const std::int64_t side = patches_of_side(tower, in, 448);
  const bool has_places = in.vision.flag({"use_absolute_position_embeddings"}, true);
  add_patches(tower, prefix + "embeddings.patch_embeddings.projection", prefix + "embeddings.cls_token",
              has_places ? prefix + "embeddings.position_embeddings" : std::string(), side);
  const std::int64_t layers = in.vision.count({"num_hidden_layers"}, 24, 1, 1000);
  const std::int64_t kept = feature_layers(in, layers, -1);
  add_intern_layers(tower, in, prefix, kTransformersNames, kept, defaults);
  if (kept == layers && !in.vision.flag({"use_mean_pooling"}, true)) tower.encoder.final_norm = norm_of(prefix + "layernorm");
  const std::string connector = in.prefix_of("multi_modal_projector.layer_norm.weight") + "multi_modal_projector.";
  add_connector(tower, in, connector + "layer_norm", connector + "linear_1", connector + "linear_2", side);
  return tower;
}

// What its configuration leaves out is as its code has it for the larger tower.
TowerShape internvl_chat_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("embeddings.class_embedding");
  const TowerDefaults defaults = {.width = 3200, .heads = 25, .activation = "gelu", .patch = 14};
  TowerShape tower = common_tower(in, defaults);
  if (in.whole.text({"ps_version"}, "v1") != "v2")
    in.whole.fail(ErrorCode::kUnsupported, "ps_version is not \"v2\": vectors that lie column by column are not computed");
  const std::int64_t side = patches_of_side(tower, in, 224);
  add_patches(tower, prefix + "embeddings.patch_embedding", prefix + "embeddings.class_embedding", prefix + "embeddings.position_embedding",
              side);
  const std::int64_t shown = in.whole.count({"force_image_size"}, side * tower.patch, tower.patch, 1 << 15) / tower.patch;
  if (shown != side) tower.places = PatchPlaces::kCubic;
  const std::int64_t layers = in.vision.count({"num_hidden_layers"}, 48, 1, 1000);
  add_intern_layers(tower, in, prefix, kOwnNames, feature_layers(in, layers, -1), defaults);
  const std::string connector = in.prefix_of("mlp1.0.weight") + "mlp1.";
  add_connector(tower, in, connector + "0", connector + "1", connector + "3", shown);
  return tower;
}

}  // namespace braid::model
