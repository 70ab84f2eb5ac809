// MiniCPM-V 2.6, 4.0 and 4.5, and MiniCPM-o: SigLIP's layers over images of any size, and as many vectors of each tile as there are queries.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <algorithm>
#include <string>
#include <utility>

namespace braid::model {
namespace {

constexpr double kResamplerEpsilon = 1e-6;  // whatever the configuration says
constexpr std::int64_t kHeadDim = 128;      // likewise

ResamplerShape resampler_of(TowerFolder& in, const TowerShape& tower) {
  const std::string own = in.prefix_of("resampler.query") + "resampler.";
  ResamplerShape shape;
  shape.width = text_width(in);
  if (shape.width % kHeadDim != 0) in.whole.fail(ErrorCode::kUnsupported, "the resampler's width is no multiple of 128");
  shape.heads = resampler_heads(shape.width);
  shape.count = static_cast<std::int32_t>(in.whole.count({"query_num"}, 64, 1, 4096));
  shape.epsilon = kResamplerEpsilon;
  shape.queries = own + "query";
  shape.inputs = tower.encoder.width;
  if (in.has(own + "kv_proj.weight")) shape.joined = linear_of(own + "kv_proj", shape.width, shape.inputs);
  const auto part = [&](std::int64_t number) {
    return EncoderLinear{.weight = own + "attn.in_proj_weight",
                         .bias = own + "attn.in_proj_bias",
                         .outputs = shape.width,
                         .inputs = shape.width,
                         .first = number * shape.width};
  };
  shape.query = part(0);
  shape.key = part(1);
  shape.value = part(2);
  shape.out = linear_of(own + "attn.out_proj", shape.width, shape.width);
  shape.query_norm = norm_of(own + "ln_q");
  shape.patch_norm = norm_of(own + "ln_kv");
  shape.after = norm_of(own + "ln_post");
  shape.projection = {.weight = own + "proj", .bias = {}, .outputs = shape.width, .inputs = shape.width};
  return shape;
}

}  // namespace

std::int32_t resampler_heads(std::int64_t width) { return static_cast<std::int32_t>(std::max<std::int64_t>(1, width / kHeadDim)); }

TowerShape minicpm_v_resampler_tower(TowerFolder& in) {
  TowerShape tower = siglip_tower(in);
  tower.places = PatchPlaces::kNearest;
  if (in.whole.flag({"drop_vision_last_layer"}, false) && tower.encoder.layers.size() > 1) tower.encoder.layers.pop_back();
  tower.resampler = resampler_of(in, tower);
  tower.forms.push_back({.name = tower.resampler->projection.weight, .kind = TensorForm::Kind::kTransposed});
  return tower;
}

}  // namespace braid::model
