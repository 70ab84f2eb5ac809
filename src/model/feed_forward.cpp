#include "model/feed_forward.h"

#include "model/activations.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

namespace braid::model {

bool FeedForward::fuses(std::int64_t rows, const FeedForwardShape& shape, const FeedForwardWeights& weights) const {
  return shape.gated && shape.activation == Activation::kSilu && weights.gate.matrix.type == weights.up.matrix.type &&
         weights.gate.bias.empty() && weights.up.bias.empty() && table_.fuses_swiglu != nullptr &&
         table_.fuses_swiglu(weights.gate.matrix.type, rows);
}

void FeedForward::run(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const {
  const FeedForwardShape& shape = layer_shape.feed_forward;
  const FeedForwardWeights& weights = layer.feed_forward;
  const bool fused = fuses(rows, shape, weights);
  const std::array projections{Product{&weights.gate.matrix, space.gate, false, fused ? &weights.up.matrix : nullptr},
                               Product{&weights.up.matrix, space.up}};
  const std::size_t first = shape.gated ? 0 : 1;
  products_.run(std::span(projections).subspan(first, shape.gated && !fused ? 2 : 1), rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, layer_shape.feed_forward_norm, layer.feed_forward_norm, space, scratch);
  });
  products_.add_bias(weights.gate, space.gate, rows);
  products_.add_bias(weights.up, space.up, rows);
  residual_.add(weights.down, layer_shape.feed_forward_post_norm, layer.feed_forward_post_norm, layer_shape.residual_scale, rows, space,
                [&](std::int64_t row, float* scratch) -> const float* {
                  if (fused) return space.gate.fetch(row, shape.width);
                  activate(shape, space.gate[row], space.up[row], scratch);
                  return scratch;
                });
}

void FeedForward::activate(const FeedForwardShape& shape, const float* gate, const float* up, float* out) const {
  if (shape.gated && shape.activation == Activation::kSilu) return table_.swiglu(gate, up, shape.width, out);
  if (shape.gated && shape.activation == Activation::kGeluTanh) return table_.geglu(gate, up, shape.width, out);
  if (shape.activation == Activation::kGeluTanh) return table_.gelu(up, shape.width, out);
  apply(shape, shape.gated ? gate : up, out);
  if (shape.gated) std::transform(out, out + shape.width, up, out, std::multiplies<>());
}

}  // namespace braid::model
