#include "model/layer_inputs.h"

#include "model/activations.h"
#include "model/norm.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace braid::model {

void LayerInputs::begin(const step::Pass& pass, Workspace& space) const {
  const LayerInputsShape& shape = *model_.layer_inputs;
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const std::int64_t all = shape.projection.outputs;
  const Product projection{&weights_.layer_inputs.projection.matrix, space.layer_inputs};
  products_.run({&projection, 1}, rows, space, [&](std::int64_t row, float*) { return space.residual[row]; });
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* own = reinterpret_cast<float*>(space.scratch_of(member));
    for (std::int64_t row = begin; row < end; ++row) {
      const step::PassToken& token = pass.tokens[static_cast<std::size_t>(row)];
      float* inputs = space.layer_inputs[row];
      std::transform(inputs, inputs + all, inputs, [&](float x) { return x * shape.projection_scale; });
      const NormWeights& norm = space.adapted.norm(row, weights_.layer_inputs.norm);
      for (std::int64_t first = 0; first < all; first += shape.width) normalise(table_, shape.norm, norm, inputs + first, inputs + first);
      table_.unpack_row(weights_.layer_inputs.table, token.given == step::PassToken::kEmbedded ? token.token : 0, own);
      std::transform(inputs, inputs + all, own, inputs, [&](float x, float y) { return (x + y * shape.table_scale) * shape.scale; });
    }
  });
}

void LayerInputs::narrow(std::int64_t rows, std::size_t index, const std::vector<float>& scale, Workspace& space) const {
  const Product down{&weights_.layers[index].input.down.matrix, space.narrow};
  products_.run({&down, 1}, rows, space, [&](std::int64_t row, float* scratch) -> const float* {
    const float* x = space.residual[row];
    if (scale.empty()) return x;
    std::transform(x, x + space.embedding, scale.begin(), scratch, std::multiplies<>());
    return scratch;
  });
  const std::int64_t width = model_.layer_inputs->width;
  FeedForwardShape activation;
  activation.activation = model_.layers[index].input->activation;
  activation.width = static_cast<std::int32_t>(width);
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
    for (std::int64_t row = begin; row < end; ++row) {
      activate(table_, activation, space.narrow[row], space.layer_inputs[row] + static_cast<std::int64_t>(index) * width, scratch);
      std::copy_n(scratch, width, space.narrow[row]);
    }
  });
}

void LayerInputs::add(std::int64_t rows, std::size_t index, Workspace& space) const {
  narrow(rows, index, {}, space);
  const LayerInputWeights& weights = weights_.layers[index].input;
  residual_.add(weights.up, model_.layers[index].input->post_norm, weights.post_norm, 1.0F, rows, space,
                [&](std::int64_t row, float*) { return space.narrow[row]; });
}

void LayerInputs::compute(std::int64_t rows, std::size_t index, const std::vector<float>& scale, Workspace& space) const {
  narrow(rows, index, scale, space);
  const LayerInputWeights& weights = weights_.layers[index].input;
  const Product up{&weights.up.matrix, space.branch};
  products_.run({&up, 1}, rows, space, [&](std::int64_t row, float*) { return space.narrow[row]; });
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* branch = space.branch[row];
      const bool sound = in_range(branch, space.embedding);
      normalise(table_, model_.layers[index].input->post_norm, space.adapted.norm(row, weights.post_norm), branch, branch);
      if (!sound) std::fill_n(branch, space.embedding, std::numeric_limits<float>::quiet_NaN());
    }
  });
}

}  // namespace braid::model
