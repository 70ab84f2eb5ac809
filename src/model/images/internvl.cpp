// InternVL 2, 2.5 and 3: a ViT whose branches are scaled for each channel, and squares of patches through a norm and two products.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <cmath>
#include <fmt/format.h>

namespace braid::model {
namespace {

// A branch's last product counts by the channel.
void scale_rows(TowerShape& tower, const std::string& product, const std::string& by) {
  for (const char* part : {".weight", ".bias"})
    tower.forms.push_back({.name = product + part, .kind = TensorForm::Kind::kScaledRows, .by = by});
}

void add_intern_layers(TowerShape& tower, TowerFolder& in, const std::string& prefix, std::int64_t layers) {
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 4096, 1, 1 << 20);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.layer.{}.", prefix, i);
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = norm_of(own + "layernorm_before");
    layer.query = linear_of(own + "attention.q_proj", width, width);
    layer.key = linear_of(own + "attention.k_proj", width, width);
    layer.value = linear_of(own + "attention.v_proj", width, width);
    layer.out = linear_of(own + "attention.projection_layer", width, width);
    layer.before_feed_forward = norm_of(own + "layernorm_after");
    layer.up = linear_of(own + "mlp.fc1", inner, width);
    layer.down = linear_of(own + "mlp.fc2", width, inner);
    scale_rows(tower, own + "attention.projection_layer", own + "lambda_1");
    scale_rows(tower, own + "mlp.fc2", own + "lambda_2");
  }
}

}  // namespace

TowerShape internvl_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("embeddings.patch_embeddings.projection.weight");
  TowerShape tower = common_tower(in, {.width = 1024, .heads = 16, .activation = "gelu", .patch = 14});
  if (in.vision.flag({"use_qk_norm"}, false))
    in.vision.fail(ErrorCode::kUnsupported, "use_qk_norm is set, which this build cannot compute");
  if (in.vision.text({"norm_type"}, "layer_norm") != "layer_norm")
    in.vision.fail(ErrorCode::kUnsupported, "norm_type is not \"layer_norm\", which this build cannot compute");
  if (in.whole.text({"vision_feature_select_strategy"}, "default") != "default")
    in.whole.fail(ErrorCode::kUnsupported, "vision_feature_select_strategy is not \"default\", which this build cannot compute");
  const std::int64_t side = patches_of_side(tower, in, 448);
  tower.patches =
      linear_of(prefix + "embeddings.patch_embeddings.projection", tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.first = prefix + "embeddings.cls_token";
  if (in.vision.flag({"use_absolute_position_embeddings"}, true)) {
    tower.places = PatchPlaces::kEach;
    tower.encoder.positions = prefix + "embeddings.position_embeddings";
    tower.encoder.first_position = 1;
  }
  tower.encoder.context = static_cast<std::int32_t>(side * side);
  const std::int64_t layers = in.vision.count({"num_hidden_layers"}, 24, 1, 1000);
  const std::int64_t kept = feature_layers(in, layers, -1);
  add_intern_layers(tower, in, prefix, kept);
  if (kept == layers && !in.vision.flag({"use_mean_pooling"}, true)) tower.encoder.final_norm = norm_of(prefix + "layernorm");
  const double ratio = in.whole.number({"downsample_ratio"}, 0.5, 1e-3, 1.0);
  tower.connector.side = static_cast<std::int32_t>(std::lround(1.0 / ratio));
  if (side % tower.connector.side != 0) in.whole.fail(ErrorCode::kBadFile, "downsample_ratio does not divide the tower's patches");
  const std::string connector = in.prefix_of("multi_modal_projector.layer_norm.weight") + "multi_modal_projector.";
  const std::int64_t joined = tower.encoder.width * tower.connector.side * tower.connector.side;
  tower.connector.after = norm_of(connector + "layer_norm");
  add_two_layers(tower, in, connector + "linear_1", connector + "linear_2", joined, text_width(in));
  return tower;
}

}  // namespace braid::model
