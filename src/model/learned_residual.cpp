#include "model/learned_residual.h"

#include "model/norm.h"

#include <algorithm>
#include <limits>

namespace braid::model {

void LearnedResidual::compute(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  const LearnedResidualWeights& weights = layer.learned_residual;
  const auto read = [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  };
  const Product down{&weights.down.matrix, space.narrow};
  products_.run({&down, 1}, rows, space, read);
  const Product up{&weights.up.matrix, space.learned_residual};
  products_.run({&up, 1}, rows, space, [&](std::int64_t row, float*) { return space.narrow[row]; });
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
    for (std::int64_t row = begin; row < end; ++row) {
      float* path = space.learned_residual[row];
      const bool sound = in_range(path, space.embedding);
      normalise(table_, shape.learned_residual->norm, space.adapted.norm(row, weights.norm), path, path);
      if (!sound) std::fill_n(path, space.embedding, std::numeric_limits<float>::quiet_NaN());
      table_.add(path, read(row, scratch), space.embedding);
    }
  });
}

void LearnedResidual::join(std::int64_t rows, const Workspace& space) const {
  constexpr float kHalfRoot = 0.70710678F;
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* x = space.residual[row];
      const float* path = space.learned_residual[row];
      std::transform(x, x + space.embedding, path, x, [](float a, float b) { return (a + b) * kHalfRoot; });
    }
  });
}

}  // namespace braid::model
