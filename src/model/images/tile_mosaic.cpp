#include "model/images/tile_mosaic.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace braid::model {
namespace {

// Beyond this much too large a picture is made smaller.
constexpr double kMostOver = 1.1;

// As torch's bilinear interpolation without corners has it: the two places that a target lies between, and how far it is to the second.
struct Between {
  std::int32_t low = 0;
  std::int32_t high = 0;
  float part = 0.0F;
};

Between between(std::int32_t target, std::int32_t from, std::int32_t to) {
  const double at = std::max(0.0, (target + 0.5) * from / to - 0.5);
  const auto low = std::min(static_cast<std::int32_t>(at), from - 1);
  return {low, std::min(low + 1, from - 1), static_cast<float>(at - low)};
}

}  // namespace

MosaicSize mosaic_size(const TowerShape& shape, const Pixels& pixels, std::int32_t side) {
  MosaicSize size;
  size.rows = pixels.grid_rows * side;
  size.columns = pixels.grid_columns * side;
  const double height = pixels.original_height;
  const double width = pixels.original_width;
  const auto fitted = [](double length) { return static_cast<std::int32_t>(std::round(length * 1e7) / 1e7); };
  if (width / height > static_cast<double>(size.columns) / size.rows) {
    size.top = (size.rows - fitted(height * (size.columns / width))) / 2;
    size.rows -= 2 * size.top;
  } else {
    size.left = (size.columns - fitted(width * (size.rows / height))) / 2;
    size.columns -= 2 * size.left;
  }
  size.shown_rows = size.rows;
  size.shown_columns = size.columns;
  if (shape.order != TileOrder::kReducedMosaic) return size;
  const double over = std::sqrt(static_cast<double>(size.rows) * size.columns / (static_cast<double>(shape.most_tiles) * side * side));
  if (over <= kMostOver) return size;
  size.shown_rows = static_cast<std::int32_t>(size.rows / over);
  size.shown_columns = static_cast<std::int32_t>(size.columns / over);
  return size;
}

std::vector<float> mosaic(const TowerShape& shape, const Pixels& pixels, std::int32_t side, std::span<const float> newline,
                          const std::vector<float>& tiles) {
  const auto width = static_cast<std::int64_t>(newline.size());
  const std::int64_t tile = std::int64_t{side} * side * width;
  const MosaicSize size = mosaic_size(shape, pixels, side);
  const auto of_tile = [&](std::int64_t index) { return tiles.begin() + index * tile; };
  std::vector<float> out(of_tile(pixels.overview), of_tile(pixels.overview + 1));
  const auto at = [&](std::int32_t row, std::int32_t column) {
    row += size.top;
    column += size.left;
    const std::int64_t part = std::int64_t{row / side} * pixels.grid_columns + column / side;
    return &*of_tile(part < pixels.overview ? part : part + 1) + (std::int64_t{row % side} * side + column % side) * width;
  };
  for (std::int32_t row = 0; row < size.shown_rows; ++row) {
    const Between down = between(row, size.rows, size.shown_rows);
    for (std::int32_t column = 0; column < size.shown_columns; ++column) {
      const Between across = between(column, size.columns, size.shown_columns);
      const float* const corners[] = {at(down.low, across.low), at(down.low, across.high), at(down.high, across.low),
                                      at(down.high, across.high)};
      for (std::int64_t i = 0; i < width; ++i) {
        const float upper = corners[0][i] * (1.0F - across.part) + corners[1][i] * across.part;
        const float lower = corners[2][i] * (1.0F - across.part) + corners[3][i] * across.part;
        out.push_back(upper * (1.0F - down.part) + lower * down.part);
      }
    }
    out.insert(out.end(), newline.begin(), newline.end());
  }
  return out;
}

}  // namespace braid::model
