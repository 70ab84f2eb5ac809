// Kimi K2.5: images of any size, whose patches turn by their rows and columns, and squares of them through a norm and two products.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <fmt/format.h>

namespace braid::model {
namespace {

// Kimi turns neighbours by column and row in turn; here pairs lie half a head apart, those that turn by rows first.
std::vector<std::int32_t> kimi_head_order(std::int32_t head_dim) {
  std::vector<std::int32_t> order;
  for (const std::int32_t of_pair : {0, 1})
    for (const std::int32_t by_row : {1, 0})
      for (std::int32_t i = 0; i < head_dim / 4; ++i) order.push_back(4 * i + 2 * by_row + of_pair);
  return order;
}

void add_kimi_layers(TowerShape& tower, TowerFolder& in, const std::string& prefix) {
  const std::int64_t width = tower.encoder.width;
  const std::int64_t inner = in.vision.count({"intermediate_size", "vt_intermediate_size"}, 4304, 1, 1 << 20);
  const std::int64_t layers = in.vision.count({"num_hidden_layers", "vt_num_hidden_layers"}, 27, 1, 1000);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.blocks.{}.", prefix, i);
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = norm_of(own + "norm0");
    layer.query = linear_of(own + "wqkv", width, width);
    layer.key = linear_of(own + "wqkv", width, width, width);
    layer.value = linear_of(own + "wqkv", width, width, 2 * width);
    layer.out = linear_of(own + "wo", width, width);
    layer.before_feed_forward = norm_of(own + "norm1");
    layer.up = linear_of(own + "mlp.fc0", inner, width);
    layer.down = linear_of(own + "mlp.fc1", width, inner);
    for (const char* part : {".weight", ".bias"})
      tower.forms.push_back({.name = own + "wqkv" + part,
                             .kind = TensorForm::Kind::kHeadOrder,
                             .count = 2 * width,
                             .order = kimi_head_order(tower.encoder.head_dim)});
  }
}

}  // namespace

TowerShape kimi_k25_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("encoder.final_layernorm.weight");
  const std::string_view width_key = in.vision.has({"vt_hidden_size"}) ? "vt_hidden_size" : "hidden_size";
  TowerShape tower = common_tower(in, {.width = 1152, .heads = 16, .epsilon = 1e-5, .patch = 14, .width_key = width_key});
  tower.encoder.epsilon = 1e-5;  // whatever the configuration says
  const std::int64_t width = tower.encoder.width;
  tower.patches = linear_of(prefix + "patch_embed.proj", width, std::int64_t{3} * tower.patch * tower.patch);
  tower.places = PatchPlaces::kCubic;
  tower.encoder.positions = prefix + "patch_embed.pos_emb.weight";
  tower.encoder.context = static_cast<std::int32_t>(in.vision.count({"pos_emb_height", "init_pos_emb_height"}, 64, 1, 4096) *
                                                    in.vision.count({"pos_emb_width", "init_pos_emb_width"}, 64, 1, 4096));
  tower.forms.push_back({.name = tower.encoder.positions, .kind = TensorForm::Kind::kColumns, .count = width});
  tower.rotation = PatchRotation{};
  if (auto rope = in.vision.part("rope_parameters")) tower.rotation->base = rope->number({"rope_theta"}, 10'000.0, 2.0, 1e12);
  tower.encoder.rotary.resize(1);
  add_kimi_layers(tower, in, prefix);
  tower.encoder.final_norm = norm_of(prefix + "encoder.final_layernorm");
  tower.connector.side = static_cast<std::int32_t>(in.vision.counts({"merge_kernel_size"}, 2, 1, 64).front());
  tower.connector.epsilon = in.whole.number({"projection_layer_norm_eps", "projector_ln_eps"}, 1e-5, 0.0, 1.0);
  const std::string connector = in.prefix_of("mm_projector.proj.0.weight") + "mm_projector.";
  tower.connector.before = norm_of(connector + "pre_norm");
  const std::int64_t joined = width * tower.connector.side * tower.connector.side;
  tower.connector.dense = {{linear_of(connector + "proj.0", joined, joined), EncoderActivation::kGelu},
                           {linear_of(connector + "proj.2", text_width(in), joined), EncoderActivation::kNone}};
  return tower;
}

}  // namespace braid::model
