#include "model/model_shape.h"

#include <algorithm>
#include <cassert>

namespace braid::model {

LinearShape LinearShape::of_expert(std::int32_t index) const {
  LinearShape own = *this;
  own.name += "." + std::to_string(index);
  return own;
}

step::Visibility ModelShape::layer_visibility(std::size_t layer) const {
  const std::int32_t window = layers[layer].attention.window;
  const std::int32_t limit = kv_limit > 0 ? kv_limit - kSinkTokens : 0;
  if (window > 0 && (limit == 0 || window <= limit)) return {window, 0};
  return {limit, limit > 0 ? kSinkTokens : 0};
}

step::Visibility ModelShape::visibility() const {
  step::Visibility widest = layer_visibility(0);
  for (std::size_t layer = 1; layer < layers.size(); ++layer) {
    const step::Visibility own = layer_visibility(layer);
    widest.window = own.window == 0 || widest.window == 0 ? 0 : std::max(widest.window, own.window);
    widest.sink = std::max(widest.sink, own.sink);
  }
  return widest;
}

KvLayout ModelShape::kv_layout(std::int32_t block_tokens, kernels::KvType type) const {
  assert(stores_alike());
  const AttentionShape& attention = layers.front().attention;
  return {.layers = static_cast<std::int32_t>(layers.size()),
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .block_tokens = block_tokens,
          .type = type,
          .latent = attention.latent.has_value()};
}

bool ModelShape::stores_alike() const {
  return std::ranges::all_of(layers, [this](const LayerShape& layer) {
    const AttentionShape& first = layers.front().attention;
    return layer.attention.stores() && layer.attention.kv_heads == first.kv_heads && layer.attention.head_dim == first.head_dim &&
           layer.attention.latent.has_value() == first.latent.has_value();
  });
}

KvGroups ModelShape::kv_groups(std::int32_t block_tokens, kernels::KvType type, const Share& share) const {
  std::vector<StoredLayer> stored;
  for (std::size_t i = 0; i < layers.size(); ++i)
    stored.push_back({.visibility = layer_visibility(i),
                      .kv_heads = layers[i].attends() && layers[i].attention.stores() ? share.heads(layers[i].attention.kv_heads) : 0,
                      .head_dim = layers[i].attention.head_dim,
                      .latent = layers[i].attention.latent.has_value()});
  const bool attends = std::ranges::any_of(layers, [](const LayerShape& layer) { return layer.attends(); });
  KvGroups groups = attends ? group_layers(stored, block_tokens, type) : KvGroups::none(layers.size(), block_tokens, type);
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (!layers[i].attention.stores()) groups.places[i] = groups.places[static_cast<std::size_t>(layers[i].attention.shares)];
  for (const StateShape& state : states())
    for (const std::int64_t floats : state) groups.least_block_bytes = std::max(groups.least_block_bytes, part_bytes(floats));
  groups.states = StateLayout(states(), groups.block_bytes());
  return groups;
}

std::int32_t ModelShape::stretch_beyond() const {
  const auto stretches = [](const RopeParameters& rope) { return !rope.stretched_divisors.empty(); };
  const auto found = std::ranges::find_if(rotary, stretches);
  return found == rotary.end() ? 0 : found->original_context;
}

bool ModelShape::is_recurrent() const {
  return std::ranges::any_of(layers, [](const LayerShape& layer) { return !layer.state().empty(); });
}

StateShape LayerShape::state() const {
  if (convolution) return StateShape(static_cast<std::size_t>(convolution->taps - 1), convolution->width);
  const auto with_heads = [](std::int32_t taps, std::int64_t width, std::int32_t heads, std::int64_t values) {
    StateShape parts(static_cast<std::size_t>(taps - 1), width);
    parts.insert(parts.end(), static_cast<std::size_t>(heads), values);
    return parts;
  };
  if (selective)
    return with_heads(selective->taps, selective->convolved(), selective->heads, std::int64_t{selective->head_dim} * selective->state);
  if (delta) return with_heads(delta->taps, delta->convolved(), delta->heads, std::int64_t{delta->key_dim} * delta->value_dim);
  return {};
}

std::int64_t LayerShape::mixed_width() const {
  if (convolution) return convolution->width;
  if (selective) return selective->inner();
  return delta ? delta->inner() : 0;
}

std::vector<StateShape> ModelShape::states() const {
  std::vector<StateShape> all;
  for (const LayerShape& layer : layers) all.push_back(layer.state());
  return all;
}

}  // namespace braid::model
