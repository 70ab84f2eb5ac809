#include "model/stream_mix.h"

#include "model/activations.h"
#include "model/norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace braid::model {
namespace {

constexpr double kLeastSquare = 1e-5;  // of a stream's mean square, before it gets another one's length

double mean_square(const float* x, std::int64_t n) { return std::inner_product(x, x + n, x, 0.0) / static_cast<double>(n); }

// y = W x, rows of W one after the other.
void multiply(const std::vector<float>& matrix, const float* x, std::int32_t inputs, std::span<float> out) {
  const float* row = matrix.data();
  for (float& y : out) {
    y = static_cast<float>(std::inner_product(row, row + inputs, x, 0.0));
    row += inputs;
  }
}

// Makes `x` as long as what has the mean square `square`.
void lengthen(float* x, std::int64_t n, double square) {
  const double own = std::max(mean_square(x, n), kLeastSquare);
  const auto factor = static_cast<float>(std::sqrt(square) / std::sqrt(own));
  std::transform(x, x + n, x, [factor](float v) { return v * factor; });
}

}  // namespace

void StreamMix::begin(std::int64_t rows, Workspace& space) const {
  const std::int32_t count = model_.streams->count;
  for (std::int32_t i = 1; i < count; ++i) {
    const Product product{&weights_.stream_begin[static_cast<std::size_t>(i - 1)].matrix,
                          {space.streams.data + std::int64_t{i} * model_.embedding, space.streams.stride}};
    products_.run({&product, 1}, rows, space, [&](std::int64_t row, float*) { return space.residual[row]; });
  }
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* x = space.residual[row];
      const double square = mean_square(x, model_.embedding);
      std::copy_n(x, model_.embedding, stream(space, row, 0));
      for (std::int32_t i = 1; i < count; ++i) lengthen(stream(space, row, i), model_.embedding, square);
    }
  });
}

void StreamMix::route(const StreamMixShape& shape, const StreamMixWeights& weights, const NormWeights& norm, const float* x, float* scratch,
                      float* routed) const {
  normalise(table_, shape.norm, norm, x, scratch);
  const auto count = static_cast<std::size_t>(model_.streams->count);
  multiply(weights.router, scratch, model_.embedding, {routed, count});
  for (std::size_t i = 0; i < count; ++i) routed[i] = 2.0F * sigmoid(2.0F * routed[i] / static_cast<float>(model_.embedding)) - 1.0F;
}

void StreamMix::predict(std::int64_t rows, std::size_t index, const Workspace& space) const {
  const StreamMixShape& shape = *model_.layers[index].mix;
  const StreamMixWeights& weights = weights_.layers[index].mix;
  const std::int32_t count = model_.streams->count;
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
    std::array<float, kMostStreams> routed;
    std::array<float, kMostStreams * kMostStreams> factors;
    std::array<float, kMostStreams> old;
    for (std::int64_t row = begin; row < end; ++row) {
      route(shape, weights, space.adapted.norm(row, weights.norm), stream(space, row, model_.streams->active), scratch, routed.data());
      multiply(weights.predict, routed.data(), count, std::span(factors).first(static_cast<std::size_t>(count * count)));
      float* first = space.streams[row];
      for (std::int64_t k = 0; k < model_.embedding; ++k) {
        for (std::int32_t i = 0; i < count; ++i) old[static_cast<std::size_t>(i)] = first[i * std::int64_t{model_.embedding} + k];
        const float* factor = factors.data();
        for (std::int32_t i = 0; i < count; ++i) {
          float sum = 0.0F;
          for (std::int32_t j = 0; j < count; ++j) sum += old[static_cast<std::size_t>(j)] * *factor++;
          first[i * std::int64_t{model_.embedding} + k] = old[static_cast<std::size_t>(i)] + sum;
        }
      }
      std::copy_n(stream(space, row, model_.streams->active), model_.embedding, space.residual[row]);
    }
  });
}

void StreamMix::correct(std::int64_t rows, std::size_t index, const Workspace& space) const {
  const StreamMixShape& shape = *model_.layers[index].mix;
  const StreamMixWeights& weights = weights_.layers[index].mix;
  const std::int32_t count = model_.streams->count;
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
    std::array<float, kMostStreams> routed;
    std::array<float, kMostStreams> factors;
    for (std::int64_t row = begin; row < end; ++row) {
      float* made = space.residual[row];
      const bool sound = in_range(made, model_.embedding);
      route(shape, weights, space.adapted.norm(row, weights.norm), made, scratch, routed.data());
      multiply(weights.correct, routed.data(), count, std::span(factors).first(static_cast<std::size_t>(count)));
      const float* active = stream(space, row, model_.streams->active);
      std::transform(made, made + model_.embedding, active, scratch, [](float x, float predicted) { return x - predicted; });
      for (std::int32_t i = 0; i < count; ++i) {
        float* x = stream(space, row, i);
        const float factor = sound ? 1.0F + factors[static_cast<std::size_t>(i)] : std::numeric_limits<float>::quiet_NaN();
        std::transform(x, x + model_.embedding, scratch, x, [factor](float own, float change) { return own + change * factor; });
      }
      std::copy_n(active, model_.embedding, made);
    }
  });
}

void StreamMix::add_branch(std::int64_t rows, const Workspace& space) const {
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int32_t i = 1; i < model_.streams->count; ++i) table_.add(stream(space, row, i), space.branch[row], model_.embedding);
  });
}

void StreamMix::end(std::int64_t rows, Workspace& space) const {
  const std::int32_t count = model_.streams->count;
  for (std::int64_t row = 0; row < rows; ++row) std::copy_n(stream(space, row, 0), model_.embedding, space.residual[row]);
  for (std::int32_t i = 1; i < count; ++i) {
    const Product product{&weights_.stream_end[static_cast<std::size_t>(i - 1)].matrix, space.branch};
    products_.run({&product, 1}, rows, space, [&](std::int64_t row, float*) { return stream(space, row, i); });
    team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row) {
        const bool sound = in_range(stream(space, row, i), model_.embedding);
        lengthen(space.branch[row], model_.embedding, mean_square(stream(space, row, 0), model_.embedding));
        if (!sound) std::fill_n(space.branch[row], model_.embedding, std::numeric_limits<float>::quiet_NaN());
        table_.add(space.residual[row], space.branch[row], model_.embedding);
      }
    });
  }
  const float share = 1.0F / static_cast<float>(count);
  for (std::int64_t row = 0; row < rows; ++row)
    std::transform(space.residual[row], space.residual[row] + model_.embedding, space.residual[row],
                   [share](float x) { return x * share; });
}

}  // namespace braid::model
