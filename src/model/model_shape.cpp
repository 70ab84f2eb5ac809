#include "model/model_shape.h"

#include <algorithm>

namespace braid::model {

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
  const AttentionShape& attention = layers.front().attention;  // all alike: no family yet has layers that differ
  return {.layers = static_cast<std::int32_t>(layers.size()),
          .kv_heads = attention.kv_heads,
          .head_dim = attention.head_dim,
          .block_tokens = block_tokens,
          .type = type};
}

}  // namespace braid::model
