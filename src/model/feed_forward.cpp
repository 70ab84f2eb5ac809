#include "model/feed_forward.h"

#include <array>
#include <span>

namespace braid::model {

void FeedForward::run(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  const kernels::PackedMatrix& gate = layer.feed_forward.gate.matrix;
  const kernels::PackedMatrix& up = layer.feed_forward.up.matrix;
  const bool fused = gate.type == up.type && table_.fuses_swiglu != nullptr && table_.fuses_swiglu(gate.type, rows);
  const std::array projections{Product{&gate, space.gate, false, fused ? &up : nullptr}, Product{&up, space.up}};
  products_.run(std::span(projections).first(fused ? 1 : 2), rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.feed_forward_norm, layer.feed_forward_norm, space, scratch);
  });
  const std::int32_t width = shape.feed_forward.width;
  residual_.add(layer.feed_forward.down, rows, space, [&](std::int64_t row, float* scratch) -> const float* {
    if (fused) return space.gate.fetch(row, width);
    table_.swiglu(space.gate[row], space.up[row], width, scratch);
    return scratch;
  });
}

}  // namespace braid::model
