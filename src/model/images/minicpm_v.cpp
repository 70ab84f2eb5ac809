// MiniCPM-V 4.6: SigLIP's layers over images of any size. Between two of them squares of patches see each other and become one, and so do squares
// of these in the end.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <utility>

namespace braid::model {
namespace {

constexpr double kConnectorEpsilon = 1e-6;  // whatever the configuration says

std::int32_t square_side(FolderConfig& config, FolderConfig::Names names) {
  const std::vector<std::int64_t> sides = config.counts(names, 2, 1, 64);
  if (sides.front() != sides.back()) config.fail(ErrorCode::kUnsupported, "patches are joined in other forms than squares");
  return static_cast<std::int32_t>(sides.front());
}

// Behind the layer of that number: attention within squares, and what makes one of each.
void add_reduction(TowerShape& tower, TowerFolder& in, const std::string& prefix, std::int64_t behind) {
  const std::int64_t width = tower.encoder.width;
  TowerReduction& reduction = tower.reduction.emplace();
  ConnectorShape& squares = reduction.squares;
  squares.side = square_side(in.vision, {"window_kernel_size"});
  if (squares.side != tower.connector.side) in.vision.fail(ErrorCode::kUnsupported, "window_kernel_size is not merge_kernel_size");
  tower.window = 1;
  EncoderLayer layer;
  layer.before_attention = norm_of(prefix + "layer_norm1");
  layer.query = linear_of(prefix + "self_attn.q_proj", width, width);
  layer.key = linear_of(prefix + "self_attn.k_proj", width, width);
  layer.value = linear_of(prefix + "self_attn.v_proj", width, width);
  layer.out = linear_of(prefix + "self_attn.out_proj", width, width);
  layer.within_parts = true;
  tower.encoder.layers.insert(tower.encoder.layers.begin() + behind + 1, std::move(layer));
  reduction.layers = static_cast<std::int32_t>(behind + 2);
  const std::int64_t patches = std::int64_t{squares.side} * squares.side;
  const std::int64_t inner = tower.encoder.layers.front().up.outputs * patches;
  squares.epsilon = tower.encoder.epsilon;
  squares.after = norm_of(prefix + "pre_norm");
  squares.dense = {{linear_of(prefix + "linear_1", inner, width * patches), EncoderActivation::kGeluTanh},
                   {linear_of(prefix + "linear_2", width, inner), EncoderActivation::kNone}};
  squares.adds_mean = true;
}

}  // namespace

TowerShape minicpm_v_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("embeddings.patch_embedding.weight");
  TowerShape tower = common_tower(in, {});
  const std::int64_t width = tower.encoder.width;
  const std::int64_t side = patches_of_side(tower, in, 224);
  tower.patches = linear_of(prefix + "embeddings.patch_embedding", width, std::int64_t{3} * tower.patch * tower.patch);
  tower.places = PatchPlaces::kNearest;
  tower.encoder.positions = prefix + "embeddings.position_embedding.weight";
  tower.encoder.context = static_cast<std::int32_t>(side * side);
  const std::int64_t layers = in.vision.count({"num_hidden_layers"}, 12, 1, 1000);
  add_vit_layers(tower, in, prefix, layers);
  tower.encoder.final_norm = norm_of(prefix + "post_layernorm");
  ConnectorShape& connector = tower.connector;
  connector.side = square_side(in.whole, {"merge_kernel_size"});
  if (in.whole.count({"merger_times"}, 1, 1, 64) != 1)
    in.whole.fail(ErrorCode::kUnsupported, "merger_times is not 1, which this build cannot compute");
  const std::int64_t behind = in.whole.count({"insert_layer_id"}, 6, 0, layers - 1);
  if (in.whole.text({"downsample_mode"}, "16x") != "4x") add_reduction(tower, in, prefix + "vit_merger.", behind);
  const std::string merger = in.prefix_of("merger.mlp.0.linear_1.weight") + "merger.mlp.0.";
  const std::int64_t joined = width * connector.side * connector.side;
  connector.epsilon = kConnectorEpsilon;
  connector.after = norm_of(merger + "pre_norm");
  connector.dense = {{linear_of(merger + "linear_1", joined, joined), EncoderActivation::kGelu},
                     {linear_of(merger + "linear_2", text_width(in), joined), EncoderActivation::kNone}};
  return tower;
}

}  // namespace braid::model
