#include "model/feed_forward.h"

#include "model/activations.h"
#include "model/fused_swiglu.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>

namespace braid::model {

void FeedForward::run(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const {
  if (layer_shape.experts) return run_with_experts(rows, layer_shape, layer, space);
  const FeedForwardShape& shape = layer_shape.feed_forward;
  project(rows, shape, layer.feed_forward, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, layer_shape.feed_forward_norm, layer.feed_forward_norm, space, scratch);
  });
  const bool fused = fuses_swiglu(table_, rows, shape, layer.feed_forward, space);
  residual_.add(layer.feed_forward.down, layer_shape.feed_forward_post_norm, layer.feed_forward_post_norm, layer_shape.residual_scale, rows,
                space, [&](std::int64_t row, float* scratch) { return activated(row, fused, shape, space, scratch); });
}

void FeedForward::run_with_experts(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const {
  read_rows(rows, layer_shape.feed_forward_norm, layer.feed_forward_norm, space);
  share(rows, layer_shape, layer, space);
  if (layer_shape.experts->own_norm.kind != NormShape::Kind::kNone) {
    add_branch_of_experts(rows, *layer_shape.experts, layer.experts, space);
  } else {
    experts_.route(rows, *layer_shape.experts, layer.experts, space);
    experts_.add(rows, *layer_shape.experts, layer.experts, space);
  }
  residual_.add_branch(layer_shape.feed_forward_post_norm, layer.feed_forward_post_norm, layer_shape.residual_scale, rows, space);
}

void FeedForward::read_rows(std::int64_t rows, const NormShape& shape, const NormWeights& norm, Workspace& space) const {
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* read = residual_.read(row, shape, norm, space, space.normed[row]);
      if (read != space.normed[row]) std::copy_n(read, space.embedding, space.normed[row]);
    }
  });
}

void FeedForward::norm_branch(std::int64_t rows, const NormShape& shape, const NormWeights& norm, Workspace& space) const {
  if (shape.kind == NormShape::Kind::kNone) return;
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* branch = space.branch[row];
      const bool sound = in_range(branch, space.embedding);
      normalise(table_, shape, space.adapted.norm(row, norm), branch, branch);
      if (!sound) std::fill_n(branch, space.embedding, std::numeric_limits<float>::quiet_NaN());
    }
  });
}

void FeedForward::add_branch_of_experts(std::int64_t rows, const ExpertsShape& shape, const ExpertsWeights& weights,
                                        Workspace& space) const {
  norm_branch(rows, shape.shared_post_norm, weights.shared_post_norm, space);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(space.branch[row], space.embedding, space.shared[row]);
    std::fill_n(space.branch[row], space.embedding, 0.0F);
  }
  if (shape.router.norm.kind != NormShape::Kind::kNone) read_rows(rows, shape.router.norm, weights.router_norm, space);
  experts_.route(rows, shape, weights, space);
  read_rows(rows, shape.own_norm, weights.own_norm, space);
  experts_.add(rows, shape, weights, space);
  norm_branch(rows, shape.post_norm, weights.post_norm, space);
  for (std::int64_t row = 0; row < rows; ++row) table_.add(space.branch[row], space.shared[row], space.embedding);
}

void FeedForward::share(std::int64_t rows, const LayerShape& layer_shape, const LayerWeights& layer, Workspace& space) const {
  const FeedForwardShape& shape = layer_shape.feed_forward;
  if (shape.width == 0) {
    for (std::int64_t row = 0; row < rows; ++row) std::fill_n(space.branch[row], space.embedding, 0.0F);
    return;
  }
  project(rows, shape, layer.feed_forward, space, [&](std::int64_t row, float*) { return space.normed[row]; });
  const bool fused = fuses_swiglu(table_, rows, shape, layer.feed_forward, space);
  const Product down{&layer.feed_forward.down.matrix, space.branch};
  products_.run({&down, 1}, rows, space, [&](std::int64_t row, float* scratch) { return activated(row, fused, shape, space, scratch); });
  products_.add_bias(layer.feed_forward.down, space.branch, rows);
  const std::vector<float>& gate = layer.experts.shared_gate;
  if (gate.empty()) return;
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = space.normed[row];
      const float share = sigmoid(static_cast<float>(std::inner_product(gate.begin(), gate.end(), x, 0.0)));
      std::transform(space.branch[row], space.branch[row] + space.embedding, space.branch[row], [&](float y) { return share * y; });
    }
  });
}

template <class Input>
void FeedForward::project(std::int64_t rows, const FeedForwardShape& shape, const FeedForwardWeights& weights, Workspace& space,
                          Input&& input) const {
  const bool fused = fuses_swiglu(table_, rows, shape, weights, space);
  const std::array projections{Product{&weights.gate.matrix, space.gate, false, fused ? &weights.up.matrix : nullptr},
                               Product{&weights.up.matrix, space.up}};
  const std::size_t first = shape.gated ? 0 : 1;
  products_.run(std::span(projections).subspan(first, shape.gated && !fused ? 2 : 1), rows, space, input);
  products_.add_bias(weights.gate, space.gate, rows);
  products_.add_bias(weights.up, space.up, rows);
}

const float* FeedForward::activated(std::int64_t row, bool fused, const FeedForwardShape& shape, const Workspace& space,
                                    float* scratch) const {
  if (fused) return space.gate.fetch(row, shape.width);
  activate(table_, shape, space.gate[row], space.up[row], scratch);
  return scratch;
}

}  // namespace braid::model
