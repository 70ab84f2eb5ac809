// Gemma 4: images of any size, whose patches turn by their columns and rows; squares of them are averaged, normed and go through one product.
// Larger language models see an image's tokens both ways in layers with a window.
#include "model/encoders/encoder_families.h"
#include "model/images/tower_families.h"

#include <cmath>
#include <fmt/format.h>

namespace braid::model {
namespace {

EncoderLinear clipped_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, bool is_clipped) {
  EncoderLinear linear = linear_of(name + ".linear", outputs, inputs);
  if (is_clipped) linear.limits = name + ".";
  return linear;
}

void add_gemma4_layers(TowerShape& tower, TowerFolder& in, const std::string& prefix) {
  const std::int64_t width = tower.encoder.width;
  const std::int64_t kv_width = std::int64_t{tower.encoder.kv_heads} * tower.encoder.head_dim;
  const std::int64_t inner = in.vision.count({"intermediate_size"}, 3072, 1, 1 << 20);
  const std::int64_t layers = in.vision.count({"num_hidden_layers"}, 16, 1, 1000);
  const bool is_clipped = in.vision.flag({"use_clipped_linears"}, false);
  const auto linear = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    return clipped_linear(name, outputs, inputs, is_clipped);
  };
  const auto reorder = [&](const std::string& name, std::int64_t rows) {
    tower.forms.push_back(
        {.name = name, .kind = TensorForm::Kind::kHeadOrder, .count = rows, .order = gemma_head_order(tower.encoder.head_dim)});
  };
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string own = fmt::format("{}encoder.layers.{}.", prefix, i);
    EncoderLayer& layer = tower.encoder.layers.emplace_back();
    layer.before_attention = rms_norm_of(own + "input_layernorm", 0.0F);
    layer.query = linear(own + "self_attn.q_proj", width, width);
    layer.key = linear(own + "self_attn.k_proj", kv_width, width);
    layer.value = linear(own + "self_attn.v_proj", kv_width, width);
    layer.out = linear(own + "self_attn.o_proj", width, width);
    layer.query_norm = rms_norm_of(own + "self_attn.q_norm", 0.0F);
    layer.key_norm = rms_norm_of(own + "self_attn.k_norm", 0.0F);
    layer.value_norm = {.weight = {}, .bias = {}, .rms = true, .plain = true};
    layer.after_attention = rms_norm_of(own + "post_attention_layernorm", 0.0F);
    layer.before_feed_forward = rms_norm_of(own + "pre_feedforward_layernorm", 0.0F);
    layer.gate = linear(own + "mlp.gate_proj", inner, width);
    layer.up = linear(own + "mlp.up_proj", inner, width);
    layer.down = linear(own + "mlp.down_proj", width, inner);
    layer.after_feed_forward = rms_norm_of(own + "post_feedforward_layernorm", 0.0F);
    reorder(layer.query.weight, width);
    reorder(layer.key.weight, kv_width);
    reorder(layer.query_norm.weight, tower.encoder.head_dim);
    reorder(layer.key_norm.weight, tower.encoder.head_dim);
  }
}

}  // namespace

// Gemma's heads have two halves, which turn by column and by row, each in pairs half of it apart. Here pairs lie half a head apart, those that
// turn by rows first.
std::vector<std::int32_t> gemma_head_order(std::int32_t head_dim) {
  const std::int32_t quarter = head_dim / 4;
  std::vector<std::int32_t> order;
  for (const std::int32_t begin : {2 * quarter, 0, 3 * quarter, quarter})
    for (std::int32_t i = 0; i < quarter; ++i) order.push_back(begin + i);
  return order;
}

TowerShape gemma4_tower(TowerFolder& in) {
  const std::string prefix = in.prefix_of("patch_embedder.input_proj.weight");
  TowerShape tower = common_tower(in, {});
  EncoderShape& encoder = tower.encoder;
  encoder.kv_heads = static_cast<std::int32_t>(in.vision.count({"num_key_value_heads"}, encoder.heads, 1, 4096));
  encoder.epsilon = in.vision.number({"rms_norm_eps"}, 1e-6, 0.0, 1.0);
  encoder.activation = activation_of(in.vision, {"hidden_activation"}, "gelu_pytorch_tanh");
  encoder.score_scale = 1.0F;
  const std::string patches = prefix + "patch_embedder.input_proj";
  tower.patches = linear_of(patches, encoder.width, std::int64_t{3} * tower.patch * tower.patch);
  tower.forms.push_back({.name = patches + ".weight", .kind = TensorForm::Kind::kPixelsLast});
  tower.pixel_scale = 2.0F;
  tower.pixel_shift = -1.0F;
  tower.places = PatchPlaces::kCrossed;
  encoder.positions = prefix + "patch_embedder.position_embedding_table";
  encoder.context = static_cast<std::int32_t>(2 * in.vision.count({"position_embedding_size"}, 10'240, 1, 1 << 20));
  tower.forms.push_back({.name = encoder.positions, .kind = TensorForm::Kind::kColumns, .count = encoder.width});
  tower.rotation = PatchRotation{.base = 100.0};
  if (auto rope = in.vision.part("rope_parameters")) tower.rotation->base = rope->number({"rope_theta"}, 100.0, 1.0, 1e12);
  encoder.rotary.resize(1);
  add_gemma4_layers(tower, in, prefix);
  ConnectorShape& connector = tower.connector;
  connector.side = static_cast<std::int32_t>(in.vision.count({"pooling_kernel_size"}, 3, 1, 64));
  connector.averages = true;
  connector.scale = std::sqrt(static_cast<float>(encoder.width));
  if (in.vision.flag({"standardize"}, false)) {
    connector.less = prefix + "std_bias";
    connector.times = prefix + "std_scale";
  }
  connector.epsilon = encoder.epsilon;
  connector.after = {.weight = {}, .bias = {}, .rms = true, .plain = true};
  const std::string projection = in.prefix_of("embed_vision.embedding_projection.weight") + "embed_vision.embedding_projection";
  connector.dense.push_back({linear_of(projection, text_width(in), encoder.width), EncoderActivation::kNone});
  tower.both_ways = in.text.text({"use_bidirectional_attention"}, "") == "vision";
  return tower;
}

}  // namespace braid::model
