// Idefics 3 and SmolVLM: SigLIP's tower and one product of squares of patches.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

namespace braid::model {

TowerShape idefics3_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("embeddings.patch_embedding.weight");
  TowerShape tower = common_tower(in, {.width = 1152, .heads = 16, .patch = 32});
  const std::int64_t side = patches_of_side(tower, in, 224);
  tower.patches = linear_of(prefix + "embeddings.patch_embedding", tower.encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.places = PatchPlaces::kEach;
  tower.encoder.positions = prefix + "embeddings.position_embedding.weight";
  tower.encoder.context = static_cast<std::int32_t>(side * side);
  add_vit_layers(tower, in, prefix, in.vision.count({"num_hidden_layers"}, 12, 1, 1000));
  tower.encoder.final_norm = norm_of(prefix + "post_layernorm");
  tower.connector.side = static_cast<std::int32_t>(in.whole.count({"scale_factor"}, 2, 1, 64));
  const std::string connector = in.prefix_of("connector.modality_projection.proj.weight") + "connector.modality_projection.proj";
  tower.connector.dense.push_back(
      {linear_of(connector, text_width(in), tower.encoder.width * tower.connector.side * tower.connector.side), {}});
  return tower;
}

}  // namespace braid::model
