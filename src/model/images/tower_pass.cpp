#include "model/images/tower_pass.h"

#include "model/images/tile_mosaic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace braid::model {
namespace {

EncoderLayers::Model ground_layers(const ImageTower& tower) {
  const EncoderShape& shape = tower.shape().encoder;
  EncoderLayers::Model model{.shape = shape,
                             .weights = tower.weights().encoder.layers,
                             .distance_bias = {},
                             .score_scale = shape.score_scale != 0.0F
                                                ? shape.score_scale
                                                : static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim))),
                             .table = tower.table(),
                             .team = tower.team()};
  if (const auto& reduction = tower.shape().reduction) model.end = static_cast<std::size_t>(reduction->layers);
  return model;
}

// Behind the reduction.
EncoderLayers::Model upper_layers(const ImageTower& tower) {
  EncoderLayers::Model model = ground_layers(tower);
  model.first = *model.end;
  model.end.reset();
  return model;
}

float* sized_for(std::vector<float>& values, std::int64_t count) {
  if (values.size() < static_cast<std::size_t>(count)) values.resize(static_cast<std::size_t>(count));
  return values.data();
}

// What a row of so much input takes in the widest of a connector's products and in all of them.
std::int64_t connector_work(const ConnectorShape& shape, std::int64_t width) {
  std::int64_t work = width * shape.side * shape.side;
  for (const EncoderDense& dense : shape.dense) work += dense.linear.inputs * dense.linear.outputs;
  return work;
}

// One square's vector: scaled, then shifted and scaled by its channels.
void shift_and_scale(const ConnectorShape& shape, const ConnectorWeights& weights, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    float value = values[i] * shape.scale;
    if (!weights.less.empty()) value -= weights.less[i];
    values[i] = weights.times.empty() ? value : value * weights.times[i];
  }
}

// act(row of the tile) for each patch of a square, row by row.
template <class Act>
void for_patches(const PatchGrid& grid, std::int32_t side, std::int32_t top, std::int32_t left, const Act& act) {
  for (std::int32_t row = top; row < top + side; ++row)
    for (std::int32_t column = left; column < left + side; ++column)
      act(std::int64_t{grid.places[static_cast<std::size_t>(row * grid.columns + column)]});
}

// A patch's planes, one after the other, from those of its tile.
void cut_patch(const float* planes, const PixelTile& tile, const TowerShape& shape, std::int32_t row, std::int32_t column, float* out) {
  const std::int32_t patch = shape.patch;
  const auto read = [&](float value) { return value * shape.pixel_scale + shape.pixel_shift; };
  for (std::int64_t plane = 0; plane < kPlanes; ++plane)
    for (std::int64_t y = 0; y < patch; ++y) {
      const float* const from = planes + (plane * tile.height + std::int64_t{row} * patch + y) * tile.width + std::int64_t{column} * patch;
      out = std::transform(from, from + patch, out, read);
    }
}

}  // namespace

TowerPass::Floor::Floor(EncoderLayers::Model model, const TowerShape& shape, std::vector<PatchGrid> all, std::int32_t side)
    : grids(std::move(all)), layers(model, rows_of_tiles(shape, grids), rows_of_parts(shape, grids), patch_angles(shape, grids)) {
  for (std::size_t tile = 0; tile < grids.size(); ++tile)
    for (std::int32_t row = 0; row < grids[tile].rows; row += side)
      for (std::int32_t column = 0; column < grids[tile].columns; column += side) squares.push_back({tile, row, column});
}

TowerPass::TowerPass(const ImageTower& tower, SharedPixels pixels)
    : tower_(tower), pixels_(std::move(pixels)), products_(tower.table(), tower.team()),
      ground_(ground_layers(tower), tower.shape(), patch_grids(tower.shape(), *pixels_),
              tower.shape().reduction ? tower.shape().reduction->squares.side : tower.shape().connector.side),
      deep_(tower.shape().deep.size()) {
  if (const auto& reduction = tower.shape().reduction)
    upper_.emplace(upper_layers(tower), tower.shape(), reduced_grids(ground_.grids, reduction->squares.side), tower.shape().connector.side);
  if (const auto& resampler = tower.shape().resampler)
    resampler_.emplace(*resampler, tower.weights().resampler, top().grids, tower.table(), tower.team());
}

bool TowerPass::advance() {
  switch (stage_) {
    case Stage::kEmbed: {
      const auto count = static_cast<std::int64_t>(ground_.grids[next_tile_].order.size());
      const std::int64_t end = std::min(count, next_ + rows_of_part(tower_.shape().patches.inputs * tower_.shape().encoder.width));
      embed_patches(next_, end);
      next_ = end;
      if (end < count) break;
      add_places();
      next_ = 0;
      if (++next_tile_ == ground_.grids.size()) stage_ = Stage::kLayers;
      break;
    }
    case Stage::kLayers:
      if (tap_layers()) break;
      if (ground_.layers.advance() || tap_layers()) break;
      stage_ = upper_ ? Stage::kReduce : Stage::kConnect;
      if (!upper_) norm_rows();
      break;
    case Stage::kReduce:
      if (connect_part(ground_, tower_.shape().reduction->squares, tower_.weights().reduction, reduced_)) break;
      std::ranges::copy(reduced_, upper_->layers.rows());
      stage_ = Stage::kUpperLayers;
      break;
    case Stage::kUpperLayers:
      if (upper_->layers.advance()) break;
      norm_rows();
      stage_ = Stage::kConnect;
      break;
    case Stage::kConnect:
      if (resampler_) {
        if (resampler_->advance(top().layers.rows())) break;
        connected_ = resampler_->take();
        stage_ = Stage::kDone;
        break;
      }
      if (!connect_part(top(), tower_.shape().connector, tower_.weights().connector, connected_)) stage_ = Stage::kDone;
      break;
    case Stage::kDone:
      break;
  }
  return stage_ != Stage::kDone;
}

// What the layers leave, where the tower has a last norm.
void TowerPass::norm_rows() {
  const EncoderShape& shape = tower_.shape().encoder;
  EncoderLayers& layers = top().layers;
  if (const EncoderNormWeights& norm = tower_.weights().encoder.final_norm)
    normalise_rows(norm, shape.epsilon, layers.rows(), layers.count(), shape.width, layers.rows(), tower_.table(), tower_.team());
}

// The next squares' vectors, behind `out`; false: they were the last.
bool TowerPass::connect_part(Floor& from, const ConnectorShape& shape, const ConnectorWeights& weights, std::vector<float>& out) {
  const auto count = static_cast<std::int64_t>(from.squares.size());
  const std::int64_t end = std::min(count, next_ + rows_of_part(connector_work(shape, tower_.shape().encoder.width)));
  connect(from, shape, weights, next_, end, out);
  next_ = end < count ? end : 0;
  return end < count;
}

// Of the tile at hand, [begin, end) in the tower's order.
void TowerPass::embed_patches(std::int64_t begin, std::int64_t end) {
  const TowerShape& shape = tower_.shape();
  const PatchGrid& grid = ground_.grids[next_tile_];
  const PixelTile& tile = pixels_->tiles[next_tile_];
  const float* planes = pixels_->values.data();
  for (std::size_t i = 0; i < next_tile_; ++i) planes += kPlanes * pixels_->tiles[i].height * pixels_->tiles[i].width;
  const std::int64_t inputs = shape.patches.inputs;
  float* const rows = sized_for(input_, (end - begin) * inputs);
  tower_.team().for_chunks(end - begin, 8, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int32_t patch = grid.order[static_cast<std::size_t>(begin + i)];
      cut_patch(planes, tile, shape, patch / grid.columns, patch % grid.columns, rows + i * inputs);
    }
  });
  const std::int64_t first = shape.first.empty() ? 0 : 1;
  products_.multiply(tower_.weights().patches, rows, end - begin,
                     ground_.layers.rows() + (grid.begin + first + begin) * shape.encoder.width);
}

// A vector for each of a tile's patches, row by row; none: there are no places.
std::vector<float> TowerPass::places_of(const PatchGrid& grid) const {
  const TowerShape& shape = tower_.shape();
  const std::int64_t width = shape.encoder.width;
  const std::span<const float> table =
      std::span(tower_.weights().encoder.positions)
          .subspan(shape.places == PatchPlaces::kNone ? 0 : static_cast<std::size_t>(shape.encoder.first_position * width));
  switch (shape.places) {
    case PatchPlaces::kNone:
      return {};
    case PatchPlaces::kEach:
      return {table.begin(), table.end()};
    case PatchPlaces::kSmoothed:
      return smoothed_places(table, width, grid.rows, grid.columns);
    case PatchPlaces::kBlended:
      return blended_places(table, width, grid.rows, grid.columns);
    case PatchPlaces::kNearest:
      return nearest_places(table, width, grid.rows, grid.columns);
    case PatchPlaces::kCubic:
      return cubic_places(table, width, grid.rows, grid.columns);
    case PatchPlaces::kCrossed:
      return crossed_places(table, width, grid.rows, grid.columns);
  }
  return {};
}

// To the patches of the tile at hand, and its first vector in front of them; then the norm of all these.
void TowerPass::add_places() {
  const TowerShape& shape = tower_.shape();
  const TowerWeights& weights = tower_.weights();
  const PatchGrid& grid = ground_.grids[next_tile_];
  const std::int64_t width = shape.encoder.width;
  float* const rows = ground_.layers.rows() + grid.begin * width;
  if (!weights.first.empty()) {
    std::ranges::copy(weights.first, rows);
    if (!weights.encoder.positions.empty()) tower_.table().add(rows, weights.encoder.positions.data(), width);
  }
  const std::vector<float> places = places_of(grid);
  for (std::size_t patch = 0; patch < grid.order.size() && !places.empty(); ++patch)
    tower_.table().add(rows + grid.places[patch] * width, places.data() + static_cast<std::int64_t>(patch) * width, width);
  if (weights.encoder.embedding_norm)
    normalise_rows(weights.encoder.embedding_norm, shape.encoder.epsilon, rows, grid.count(!shape.first.empty()), width, rows,
                   tower_.table(), tower_.team());
}

// A part of what a deep connector makes of the layers so far; false: there is none to be made now.
bool TowerPass::tap_layers() {
  const TowerShape& shape = tower_.shape();
  if (tapped_ == shape.deep.size() || std::cmp_less(ground_.layers.finished(), shape.deep[tapped_].layers)) return false;
  if (!connect_part(ground_, shape.deep[tapped_].connector, tower_.weights().deep[tapped_], deep_[tapped_])) ++tapped_;
  return true;
}

// One square's patches beside each other, or their mean. `rows`: those of the tile.
void TowerPass::join(const Floor& from, const ConnectorShape& shape, const Square& square, const float* rows, float* out) const {
  const PatchGrid& grid = from.grids[square.tile];
  const std::int64_t width = tower_.shape().encoder.width;
  for_patches(grid, shape.side, square.row, square.column, [&](std::int64_t row) { out = std::copy_n(rows + row * width, width, out); });
}

// The mean of one square's patches.
void TowerPass::average(const Floor& from, std::int32_t side, const Square& square, const float* rows, float* out) const {
  const PatchGrid& grid = from.grids[square.tile];
  const std::int64_t width = tower_.shape().encoder.width;
  const auto patches = static_cast<float>(side * side);
  std::fill_n(out, width, 0.0F);
  for_patches(grid, side, square.row, square.column, [&](std::int64_t row) { tower_.table().add(out, rows + row * width, width); });
  std::transform(out, out + width, out, [patches](float sum) { return sum / patches; });
}

// Squares [begin, end) to their vectors.
void TowerPass::connect(Floor& from, const ConnectorShape& shape, const ConnectorWeights& weights, std::int64_t begin, std::int64_t end,
                        std::vector<float>& out) {
  const std::int64_t patch_width = tower_.shape().encoder.width;
  const std::int64_t joined_width = shape.averages ? patch_width : patch_width * shape.side * shape.side;
  const std::int64_t count = end - begin;
  float* const joined = sized_for(input_, count * joined_width);
  const auto each_square = [&](const auto& act) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Square& square = from.squares[static_cast<std::size_t>(begin + i)];
      act(i, square, from.layers.rows() + from.grids[square.tile].begin * patch_width);
    }
  };
  each_square([&](std::int64_t i, const Square& square, const float* rows) {
    float* const to = joined + i * joined_width;
    shape.averages ? average(from, shape.side, square, rows, to) : join(from, shape, square, rows, to);
  });
  if (shape.scale != 1.0F || !weights.less.empty() || !weights.times.empty())
    for (std::int64_t i = 0; i < count; ++i)
      shift_and_scale(shape, weights, std::span(joined + i * joined_width, static_cast<std::size_t>(joined_width)));
  const auto normalise = [&](const EncoderNormWeights& norm, std::int64_t width) {
    if (norm) normalise_rows(norm, shape.epsilon, joined, count * joined_width / width, width, joined, tower_.table(), tower_.team());
  };
  normalise(weights.before, patch_width);
  normalise(weights.after, joined_width);
  float* values = joined;
  std::int64_t width = joined_width;
  for (std::size_t i = 0; i < shape.dense.size(); ++i) {
    const std::int64_t outputs = shape.dense[i].linear.outputs;
    std::vector<float> next(static_cast<std::size_t>(count * outputs));
    products_.multiply(weights.dense[i], values, count, next.data());
    tower_.team().for_chunks(count, 4, [&](std::int64_t first, std::int64_t last, int) {
      activate(tower_.table(), shape.dense[i].activation, next.data() + first * outputs, (last - first) * outputs);
    });
    part_ = std::move(next);
    values = part_.data();
    width = outputs;
  }
  if (shape.adds_mean) {
    std::vector<float> mean(static_cast<std::size_t>(patch_width));
    each_square([&](std::int64_t i, const Square& square, const float* rows) {
      average(from, shape.side, square, rows, mean.data());
      tower_.table().add(values + i * width, mean.data(), width);
    });
  }
  out.insert(out.end(), values, values + count * width);
}

// Of the image, of what its squares have become.
std::vector<float> TowerPass::vectors_of(std::vector<float> connected) const {
  const TowerShape& shape = tower_.shape();
  if (shape.order == TileOrder::kAsTheyCome) return connected;
  const std::vector<float>& newline = tower_.weights().newline;
  if (pixels_->overview >= 0) return mosaic(shape, *pixels_, ground_.grids.front().rows / shape.connector.side, newline, connected);
  connected.insert(connected.end(), newline.begin(), newline.end());
  return connected;
}

std::vector<float> TowerPass::take() {
  std::vector<float> vectors = vectors_of(std::move(connected_));
  if (!deep_.empty()) {
    const std::int64_t width = tower_.shape().vector_width();
    const auto count = static_cast<std::int64_t>(vectors.size()) / width;
    std::vector<float> all;
    for (std::int64_t i = 0; i < count; ++i) {
      all.insert(all.end(), vectors.begin() + i * width, vectors.begin() + (i + 1) * width);
      for (const std::vector<float>& deep : deep_) all.insert(all.end(), deep.begin() + i * width, deep.begin() + (i + 1) * width);
    }
    vectors = std::move(all);
  }
  if (!std::ranges::all_of(vectors, [](float value) { return std::isfinite(value); })) vectors.clear();
  return vectors;
}

}  // namespace braid::model
