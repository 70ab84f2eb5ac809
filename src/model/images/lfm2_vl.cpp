// LFM2-VL: SigLIP 2 with images of any size, and squares of patches through a norm and two products.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

namespace braid::model {

TowerShape lfm2_vl_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("embeddings.patch_embedding.weight");
  TowerShape tower = common_tower(in, {});
  const std::string patches = prefix + "embeddings.patch_embedding";
  tower.patches = linear_of(patches, tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.forms.push_back({.name = patches + ".weight", .kind = TensorForm::Kind::kPixelsLast});
  tower.places = PatchPlaces::kSmoothed;
  tower.encoder.positions = prefix + "embeddings.position_embedding.weight";
  tower.encoder.context = static_cast<std::int32_t>(in.vision.count({"num_patches"}, 256, 1, 1 << 24));
  const std::int64_t layers = in.vision.count({"num_hidden_layers"}, 12, 1, 1000);
  add_vit_layers(tower, in, prefix, layers);
  tower.encoder.final_norm = norm_of(prefix + "post_layernorm");
  tower.connector.side = static_cast<std::int32_t>(in.whole.count({"downsample_factor"}, 2, 1, 64));
  const std::string connector = in.prefix_of("multi_modal_projector.linear_1.weight") + "multi_modal_projector.";
  if (in.whole.flag({"projector_use_layernorm"}, true)) tower.connector.after = norm_of(connector + "layer_norm");
  add_two_layers(tower, in, connector + "linear_1", connector + "linear_2",
                 tower.encoder.width * tower.connector.side * tower.connector.side,
                 in.whole.count({"projector_hidden_size"}, 2560, 1, 1 << 20));
  return tower;
}

}  // namespace braid::model
