// LLaVA 1.5, 1.6 (NeXT) and OneVision: a CLIP or SigLIP tower up to one of its last layers, and two products.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <charconv>
#include <fmt/format.h>

namespace braid::model {
namespace {

// The tower that is named; its layers up to vision_feature_layer, and no norm behind them.
TowerShape tower_up_to_features(TowerFolder& in) {
  const std::string type = in.vision.text({"model_type"}, "clip_vision_model");
  const std::string selected = in.whole.text({"vision_feature_select_strategy"}, "default");
  const auto expect = [&](std::string_view strategy) {
    if (selected != strategy)
      in.whole.fail(
          ErrorCode::kUnsupported,
          fmt::format("vision_feature_select_strategy is \"{}\", expected \"{}\" with a tower of the type {}", selected, strategy, type));
  };
  if (type == "clip_vision_model") {
    expect("default");
    return clip_tower(in);
  }
  if (type == "siglip_vision_model") {
    expect("full");
    TowerShape tower = siglip_tower(in);
    tower.encoder.layers.resize(static_cast<std::size_t>(feature_layers(in, static_cast<std::int64_t>(tower.encoder.layers.size()), -1)));
    tower.encoder.final_norm = {};
    return tower;
  }
  if (type == "pixtral") {
    expect("full");
    return pixtral_tower(in);
  }
  in.vision.fail(ErrorCode::kUnsupported, fmt::format("the tower is of the type \"{}\", expected CLIP, SigLIP or Pixtral", type));
  return common_tower(in, {});
}

TowerShape with_connector(TowerShape tower, TowerFolder& in) {
  const std::string prefix = in.prefix_of("multi_modal_projector.linear_1.weight") + "multi_modal_projector.";
  add_two_layers(tower, in, prefix + "linear_1", prefix + "linear_2", tower.encoder.width, text_width(in));
  return tower;
}

}  // namespace

TowerShape llava_tower(TowerFolder& in) { return with_connector(tower_up_to_features(in), in); }

TowerShape llava_next_tower(TowerFolder& in) {
  TowerShape tower = llava_tower(in);
  tower.order = TileOrder::kMosaic;
  tower.newline = in.prefix_of("image_newline") + "image_newline";
  return tower;
}

TowerShape llava_onevision_tower(TowerFolder& in) {
  TowerShape tower = llava_next_tower(in);
  tower.order = TileOrder::kReducedMosaic;
  constexpr std::string_view kForm = "anyres_max_";
  const std::string ratio = in.whole.text({"vision_aspect_ratio"}, "anyres_max_9");
  const char* const begin = ratio.data() + std::min(ratio.size(), kForm.size());
  const char* const end = ratio.data() + ratio.size();
  if (!ratio.starts_with(kForm) || std::from_chars(begin, end, tower.most_tiles).ptr != end || tower.most_tiles < 1)
    in.whole.fail(ErrorCode::kUnsupported, fmt::format("vision_aspect_ratio is \"{}\", expected anyres_max_9 or the like", ratio));
  return tower;
}

}  // namespace braid::model
