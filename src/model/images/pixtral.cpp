// Pixtral and Mistral 3: images of any size, whose patches turn by their rows and columns; Mistral 3 joins squares of them.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <fmt/format.h>

namespace braid::model {

TowerShape pixtral_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("patch_conv.weight");
  TowerShape tower = common_tower(in, {.width = 1024, .heads = 16, .activation = "gelu", .epsilon = 1e-5});
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 4096, 1, 1 << 20);
  tower.patches = linear_of(prefix + "patch_conv", width, std::int64_t{3} * tower.patch * tower.patch);
  double base = in.vision.number({"rope_theta"}, 10'000.0, 2.0, 1e12);
  if (auto rope = in.vision.part("rope_parameters")) base = rope->number({"rope_theta"}, base, 2.0, 1e12);
  tower.rotation = PatchRotation{.base = base, .alternating = true};
  tower.encoder.embedding_norm = rms_norm_of(prefix + "ln_pre", 0.0F);
  tower.encoder.rotary.resize(1);
  const std::int64_t layers = feature_layers(in, in.vision.count({"num_hidden_layers"}, 24, 1, 1000), -1);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}transformer.layers.{}.", prefix, i);
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = rms_norm_of(own + "attention_norm", 0.0F);
    layer.query = linear_of(own + "attention.q_proj", width, width);
    layer.key = linear_of(own + "attention.k_proj", width, width);
    layer.value = linear_of(own + "attention.v_proj", width, width);
    layer.out = linear_of(own + "attention.o_proj", width, width);
    layer.before_feed_forward = rms_norm_of(own + "ffn_norm", 0.0F);
    layer.gate = linear_of(own + "feed_forward.gate_proj", inner, width);
    layer.up = linear_of(own + "feed_forward.up_proj", inner, width);
    layer.down = linear_of(own + "feed_forward.down_proj", width, inner);
  }
  return tower;
}

TowerShape mistral3_tower(TowerFolder& in) {
  TowerShape tower = pixtral_tower(in);
  const std::int64_t width = tower.encoder.width;
  const std::string prefix = in.prefix_of("multi_modal_projector.linear_1.weight") + "multi_modal_projector.";
  tower.connector.side = static_cast<std::int32_t>(in.whole.count({"spatial_merge_size"}, 2, 1, 64));
  tower.connector.epsilon = in.text.number({"rms_norm_eps"}, 1e-5, 0.0, 1.0);
  tower.connector.before = rms_norm_of(prefix + "norm", 0.0F);
  const std::int32_t patches = tower.connector.side * tower.connector.side;
  const std::string merging = prefix + "patch_merger.merging_layer";
  tower.forms.push_back({.name = merging + ".weight", .kind = TensorForm::Kind::kSquaresLast, .by = {}, .count = patches});
  tower.connector.dense.push_back({linear_of(merging, width, width * patches), EncoderActivation::kNone});
  add_two_layers(tower, in, prefix + "linear_1", prefix + "linear_2", width, text_width(in));
  return tower;
}

}  // namespace braid::model
