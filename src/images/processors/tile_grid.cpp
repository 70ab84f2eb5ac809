#include "images/processors/tile_grid.h"

#include <cmath>
#include <limits>

namespace braid::images {

TileGrid best_grid(Size picture, std::int64_t tile_area, std::int32_t least, std::int32_t most) {
  const double ratio = static_cast<double>(picture.width) / picture.height;
  const auto area = static_cast<double>(picture.area());
  double least_off = std::numeric_limits<double>::infinity();
  TileGrid best;
  for (std::int32_t tiles = least; tiles <= most; ++tiles)
    for (std::int32_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const TileGrid grid{tiles / columns, columns};
      const double off = std::abs(ratio - static_cast<double>(grid.columns) / grid.rows);
      if (off > least_off) continue;
      if (off == least_off && area <= 0.5 * static_cast<double>(tile_area * tiles)) continue;
      least_off = off;
      best = grid;
    }
  return best;
}

}  // namespace braid::images
