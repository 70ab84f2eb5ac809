#include "model/images/patch_grid.h"

#include "model/deterministic_math.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace braid::model {
namespace {

// Row by row, or window by window, each with the squares that the connector joins kept together.
void order_patches(const TowerShape& shape, PatchGrid& grid) {
  const std::int32_t side = shape.window > 0 ? shape.window * shape.connector.side : std::max(grid.rows, grid.columns);
  for (std::int32_t top = 0; top < grid.rows; top += side)
    for (std::int32_t left = 0; left < grid.columns; left += side) {
      const std::size_t before = grid.order.size();
      for (std::int32_t row = top; row < std::min(grid.rows, top + side); ++row)
        for (std::int32_t column = left; column < std::min(grid.columns, left + side); ++column)
          grid.order.push_back(row * grid.columns + column);
      if (shape.window > 0) grid.parts.push_back(static_cast<std::int32_t>(grid.order.size() - before));
    }
  const std::int32_t first = shape.first.empty() ? 0 : 1;
  grid.places.resize(grid.order.size());
  for (std::size_t i = 0; i < grid.order.size(); ++i)
    grid.places[static_cast<std::size_t>(grid.order[i])] = first + static_cast<std::int32_t>(i);
}

// Weights of a resize's source places for one target place, the first of them `first`.
struct Taps {
  std::int32_t first = 0;
  std::vector<float> weights;
};

// A triangle as wide as a target place covers, at least as one source place.
Taps triangle(std::int32_t target, std::int32_t from, std::int32_t to) {
  const double scale = static_cast<double>(from) / to;
  const double reach = std::max(1.0, scale);
  const double center = scale * (target + 0.5);
  Taps taps;
  taps.first = std::max(static_cast<std::int32_t>(center - reach + 0.5), 0);
  const std::int32_t end = std::min(static_cast<std::int32_t>(center + reach + 0.5), from);
  double sum = 0.0;
  for (std::int32_t source = taps.first; source < end; ++source) sum += std::max(0.0, 1.0 - std::abs((source + 0.5 - center) / reach));
  for (std::int32_t source = taps.first; source < end; ++source)
    taps.weights.push_back(static_cast<float>(std::max(0.0, 1.0 - std::abs((source + 0.5 - center) / reach)) / sum));
  return taps;
}

// Between two neighbours, the first and last target on the first and last source.
Taps blend(std::int32_t target, std::int32_t from, std::int32_t to) {
  const double at = to > 1 ? static_cast<double>(target) * (from - 1) / (to - 1) : 0.0;
  const auto low = static_cast<std::int32_t>(at);
  const auto part = static_cast<float>(at - low);
  if (low + 1 >= from) return {from - 1, {1.0F}};
  return {low, {1.0F - part, part}};
}

// The cell that the fraction of the side lies in, both computed in float32 as torch's bucketize has them.
Taps nearest(std::int32_t target, std::int32_t from, std::int32_t to) {
  const float at = static_cast<float>(target) / static_cast<float>(to);
  const double cell = 1.0 / from;
  std::int32_t place = 0;
  while (place + 1 < from && static_cast<float>(cell + place * cell) <= at) ++place;
  return {place, {1.0F}};
}

// Among four neighbours by Keys' cubic (a = -0.75), which end at the edges.
Taps cubic(std::int32_t target, std::int32_t from, std::int32_t to) {
  constexpr double kSharpness = -0.75;
  const double at = (target + 0.5) * from / to - 0.5;
  const double low = std::floor(at);
  const auto weight = [&](double distance) {
    const double d = std::abs(distance);
    if (d <= 1.0) return ((kSharpness + 2.0) * d - (kSharpness + 3.0)) * d * d + 1.0;
    return ((d - 5.0) * d + 8.0) * d * kSharpness - 4.0 * kSharpness;
  };
  const auto place_of = [&](std::int32_t neighbour) { return std::clamp(static_cast<std::int32_t>(low) + neighbour, 0, from - 1); };
  Taps taps{place_of(-1), std::vector<float>(static_cast<std::size_t>(place_of(2) - place_of(-1) + 1), 0.0F)};
  for (std::int32_t i = -1; i <= 2; ++i)
    taps.weights[static_cast<std::size_t>(place_of(i) - taps.first)] += static_cast<float>(weight(at - low - i));
  return taps;
}

template <class Tap>
std::vector<float> resized(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns, const Tap& tap) {
  const auto side = static_cast<std::int32_t>(std::lround(std::sqrt(static_cast<double>(static_cast<std::int64_t>(table.size()) / width))));
  std::vector<float> out(static_cast<std::size_t>(std::int64_t{rows} * columns * width));
  for (std::int32_t row = 0; row < rows; ++row) {
    const Taps down = tap(row, side, rows);
    for (std::int32_t column = 0; column < columns; ++column) {
      const Taps across = tap(column, side, columns);
      float* const to = out.data() + (std::int64_t{row} * columns + column) * width;
      for (std::size_t y = 0; y < down.weights.size(); ++y)
        for (std::size_t x = 0; x < across.weights.size(); ++x) {
          const float weight = down.weights[y] * across.weights[x];
          const std::int64_t place = (down.first + static_cast<std::int64_t>(y)) * side + across.first + static_cast<std::int64_t>(x);
          for (std::int64_t i = 0; i < width; ++i) to[i] += weight * table[static_cast<std::size_t>(place * width + i)];
        }
    }
  }
  return out;
}

double frequency(const PatchRotation& rotation, std::int32_t head_dim, double pair) {
  return fixed_exp(-pair * 4.0 / head_dim * fixed_log(rotation.base));
}

}  // namespace

std::vector<PatchGrid> patch_grids(const TowerShape& shape, const Pixels& pixels) {
  std::vector<PatchGrid> grids;
  std::int64_t begin = 0;
  for (const PixelTile& tile : pixels.tiles) {
    PatchGrid& grid = grids.emplace_back();
    grid.rows = tile.height / shape.patch;
    grid.columns = tile.width / shape.patch;
    grid.begin = begin;
    order_patches(shape, grid);
    begin += grid.count(!shape.first.empty());
  }
  return grids;
}

std::vector<PatchGrid> reduced_grids(const std::vector<PatchGrid>& grids, std::int32_t side) {
  std::vector<PatchGrid> reduced;
  std::int64_t begin = 0;
  for (const PatchGrid& whole : grids) {
    PatchGrid& grid = reduced.emplace_back();
    grid.rows = whole.rows / side;
    grid.columns = whole.columns / side;
    grid.begin = begin;
    grid.order.resize(static_cast<std::size_t>(grid.rows * grid.columns));
    std::iota(grid.order.begin(), grid.order.end(), 0);
    grid.places = grid.order;
    begin += grid.count(false);
  }
  return reduced;
}

std::vector<TextRows> rows_of_tiles(const TowerShape& shape, const std::vector<PatchGrid>& grids) {
  std::vector<TextRows> rows;
  for (const PatchGrid& grid : grids) rows.push_back({grid.begin, static_cast<std::int32_t>(grid.count(!shape.first.empty()))});
  return rows;
}

std::vector<TextRows> rows_of_parts(const TowerShape& shape, const std::vector<PatchGrid>& grids) {
  std::vector<TextRows> rows;
  if (shape.window == 0) return rows;
  std::int64_t begin = 0;
  for (const PatchGrid& grid : grids)
    for (const std::int32_t count : grid.parts) {
      rows.push_back({begin, count});
      begin += count;
    }
  return rows;
}

std::vector<RowAngles> patch_angles(const TowerShape& shape, const std::vector<PatchGrid>& grids) {
  if (!shape.rotation) return {};
  const std::int32_t head_dim = shape.encoder.head_dim;
  RowAngles angles;
  angles.pairs = head_dim / 2;
  const std::int64_t half = angles.pairs / 2;
  const double shift = shape.rotation->alternating ? 0.5 : 0.0;
  for (const PatchGrid& grid : grids)
    for (const std::int32_t patch : grid.order)
      for (std::int64_t pair = 0; pair < angles.pairs; ++pair) {
        const bool by_row = pair < half;
        const double place = by_row ? patch / grid.columns : patch % grid.columns;
        const auto turn = static_cast<double>(by_row ? pair : pair - half) + (by_row ? 0.0 : shift);
        const SinCos at = fixed_sin_cos(place * frequency(*shape.rotation, head_dim, turn));
        angles.cos.push_back(static_cast<float>(at.cos));
        angles.sin.push_back(static_cast<float>(at.sin));
      }
  return {std::move(angles)};
}

std::vector<float> smoothed_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns) {
  return resized(table, width, rows, columns, triangle);
}

std::vector<float> blended_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns) {
  return resized(table, width, rows, columns, blend);
}

std::vector<float> nearest_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns) {
  return resized(table, width, rows, columns, nearest);
}

std::vector<float> cubic_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns) {
  return resized(table, width, rows, columns, cubic);
}

std::vector<float> crossed_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns) {
  const float* const of_rows = table.data() + static_cast<std::int64_t>(table.size()) / 2;
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(std::int64_t{rows} * columns * width));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      for (std::int64_t i = 0; i < width; ++i)
        out.push_back(table[static_cast<std::size_t>(column * width + i)] + of_rows[row * width + i]);
  return out;
}

}  // namespace braid::model
