#include "model/images/tower_pass.h"

#include "model/images/tile_mosaic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace braid::model {
namespace {

EncoderLayers::Model layers_of(const ImageTower& tower) {
  const EncoderShape& shape = tower.shape().encoder;
  return {.shape = shape,
          .weights = tower.weights().encoder.layers,
          .distance_bias = {},
          .score_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim))),
          .table = tower.table(),
          .team = tower.team()};
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

// A patch's planes, one after the other, from those of its tile.
void cut_patch(const float* planes, const PixelTile& tile, std::int32_t patch, std::int32_t row, std::int32_t column, float* out) {
  for (std::int64_t plane = 0; plane < kPlanes; ++plane)
    for (std::int64_t y = 0; y < patch; ++y) {
      const float* const from = planes + (plane * tile.height + std::int64_t{row} * patch + y) * tile.width + std::int64_t{column} * patch;
      out = std::copy_n(from, patch, out);
    }
}

}  // namespace

TowerPass::TowerPass(const ImageTower& tower, SharedPixels pixels)
    : tower_(tower), pixels_(std::move(pixels)), grids_(patch_grids(tower.shape(), *pixels_)), products_(tower.table(), tower.team()),
      layers_(layers_of(tower), rows_of_tiles(tower.shape(), grids_), rows_of_parts(tower.shape(), grids_),
              patch_angles(tower.shape(), grids_)),
      deep_(tower.shape().deep.size()) {
  const std::int32_t side = tower.shape().connector.side;
  for (std::size_t tile = 0; tile < grids_.size(); ++tile)
    for (std::int32_t row = 0; row < grids_[tile].rows; row += side)
      for (std::int32_t column = 0; column < grids_[tile].columns; column += side) squares_.push_back({tile, row, column});
}

bool TowerPass::advance() {
  switch (stage_) {
    case Stage::kEmbed: {
      const auto count = static_cast<std::int64_t>(grids_[next_tile_].order.size());
      const std::int64_t end = std::min(count, next_ + rows_of_part(tower_.shape().patches.inputs * tower_.shape().encoder.width));
      embed_patches(next_, end);
      next_ = end;
      if (end < count) break;
      add_places();
      next_ = 0;
      if (++next_tile_ == grids_.size()) stage_ = Stage::kLayers;
      break;
    }
    case Stage::kLayers:
      if (tap_layers()) break;
      if (layers_.advance() || tap_layers()) break;
      if (const EncoderNormWeights& norm = tower_.weights().encoder.final_norm)
        normalise_rows(norm, tower_.shape().encoder.epsilon, layers_.rows(), layers_.count(), tower_.shape().encoder.width, layers_.rows(),
                       tower_.table(), tower_.team());
      stage_ = Stage::kConnect;
      break;
    case Stage::kConnect: {
      const ConnectorShape& shape = tower_.shape().connector;
      const auto count = static_cast<std::int64_t>(squares_.size());
      const std::int64_t end = std::min(count, next_ + rows_of_part(connector_work(shape, tower_.shape().encoder.width)));
      connect(shape, tower_.weights().connector, next_, end, connected_);
      next_ = end;
      if (end == count) stage_ = Stage::kDone;
      break;
    }
    case Stage::kDone:
      break;
  }
  return stage_ != Stage::kDone;
}

// Of the tile at hand, [begin, end) in the tower's order.
void TowerPass::embed_patches(std::int64_t begin, std::int64_t end) {
  const TowerShape& shape = tower_.shape();
  const PatchGrid& grid = grids_[next_tile_];
  const PixelTile& tile = pixels_->tiles[next_tile_];
  const float* planes = pixels_->values.data();
  for (std::size_t i = 0; i < next_tile_; ++i) planes += kPlanes * pixels_->tiles[i].height * pixels_->tiles[i].width;
  const std::int64_t inputs = shape.patches.inputs;
  float* const rows = sized_for(input_, (end - begin) * inputs);
  tower_.team().for_chunks(end - begin, 8, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int32_t patch = grid.order[static_cast<std::size_t>(begin + i)];
      cut_patch(planes, tile, shape.patch, patch / grid.columns, patch % grid.columns, rows + i * inputs);
    }
  });
  const std::int64_t first = shape.first.empty() ? 0 : 1;
  products_.multiply(tower_.weights().patches, rows, end - begin, layers_.rows() + (grid.begin + first + begin) * shape.encoder.width);
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
  }
  return {};
}

// To the patches of the tile at hand, and its first vector in front of them; then the norm of all these.
void TowerPass::add_places() {
  const TowerShape& shape = tower_.shape();
  const TowerWeights& weights = tower_.weights();
  const PatchGrid& grid = grids_[next_tile_];
  const std::int64_t width = shape.encoder.width;
  float* const rows = layers_.rows() + grid.begin * width;
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
  if (tapped_ == shape.deep.size() || std::cmp_less(layers_.finished(), shape.deep[tapped_].layers)) return false;
  const auto count = static_cast<std::int64_t>(squares_.size());
  const ConnectorShape& connector = shape.deep[tapped_].connector;
  const std::int64_t end = std::min(count, next_ + rows_of_part(connector_work(connector, shape.encoder.width)));
  connect(connector, tower_.weights().deep[tapped_], next_, end, deep_[tapped_]);
  next_ = end < count ? end : 0;
  if (end == count) ++tapped_;
  return true;
}

// One square's patches beside each other, or their mean. `rows`: the tower's, of the tile.
void TowerPass::join(const ConnectorShape& shape, const Square& square, const float* rows, float* out) const {
  const PatchGrid& grid = grids_[square.tile];
  const std::int64_t width = tower_.shape().encoder.width;
  const auto patches = static_cast<float>(shape.side * shape.side);
  if (shape.averages) std::fill_n(out, width, 0.0F);
  for (std::int32_t row = square.row; row < square.row + shape.side; ++row)
    for (std::int32_t column = square.column; column < square.column + shape.side; ++column) {
      const float* const patch = rows + grid.places[static_cast<std::size_t>(row * grid.columns + column)] * width;
      if (shape.averages) {
        tower_.table().add(out, patch, width);
      } else {
        out = std::copy_n(patch, width, out);
      }
    }
  if (shape.averages) std::transform(out, out + width, out, [patches](float sum) { return sum / patches; });
}

// Squares [begin, end) to their vectors.
void TowerPass::connect(const ConnectorShape& shape, const ConnectorWeights& weights, std::int64_t begin, std::int64_t end,
                        std::vector<float>& out) {
  const std::int64_t patch_width = tower_.shape().encoder.width;
  const std::int64_t joined_width = shape.averages ? patch_width : patch_width * shape.side * shape.side;
  const std::int64_t count = end - begin;
  float* const joined = sized_for(input_, count * joined_width);
  for (std::int64_t i = 0; i < count; ++i) {
    const Square& square = squares_[static_cast<std::size_t>(begin + i)];
    join(shape, square, layers_.rows() + grids_[square.tile].begin * patch_width, joined + i * joined_width);
  }
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
    tower_.team().for_chunks(count, 4, [&](std::int64_t from, std::int64_t to, int) {
      activate(tower_.table(), shape.dense[i].activation, next.data() + from * outputs, (to - from) * outputs);
    });
    part_ = std::move(next);
    values = part_.data();
    width = outputs;
  }
  out.insert(out.end(), values, values + count * width);
}

// Of the image, of what its squares have become.
std::vector<float> TowerPass::vectors_of(std::vector<float> connected) const {
  const TowerShape& shape = tower_.shape();
  if (shape.order == TileOrder::kAsTheyCome) return connected;
  const std::vector<float>& newline = tower_.weights().newline;
  if (pixels_->overview >= 0) return mosaic(shape, *pixels_, grids_.front().rows / shape.connector.side, newline, connected);
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
