// Gemma 3: SigLIP's tower, squares of patches averaged, a norm and one product. Its language model sees an image's tokens both ways.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <cmath>
#include <fmt/format.h>

namespace braid::model {

TowerShape gemma3_tower(TowerFolder& in) {
  TowerShape tower = siglip_tower(in);
  const std::string prefix = in.prefix_of("multi_modal_projector.mm_input_projection_weight") + "multi_modal_projector.";
  const std::int64_t tokens = in.whole.count({"mm_tokens_per_image"}, 256, 1, 1 << 20);
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(tower.encoder.context))));
  const auto vectors = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tokens)));
  if (vectors < 1 || side % vectors != 0)
    in.whole.fail(ErrorCode::kUnsupported, fmt::format("{} tokens do not come of {} by {} patches", tokens, side, side));
  tower.connector.side = static_cast<std::int32_t>(std::max<std::int64_t>(1, side / std::max<std::int64_t>(1, vectors)));
  tower.connector.averages = true;
  tower.connector.epsilon = tower.encoder.epsilon;
  tower.connector.after = rms_norm_of(prefix + "mm_soft_emb_norm", 1.0F);
  const std::string projection = prefix + "mm_input_projection_weight";
  tower.forms.push_back({.name = projection, .kind = TensorForm::Kind::kTransposed});
  tower.connector.dense.push_back({{.weight = projection, .bias = {}, .outputs = text_width(in), .inputs = tower.encoder.width}, {}});
  tower.both_ways = true;
  return tower;
}

}  // namespace braid::model
