// How many tiles a picture is cut into.
#pragma once

#include "images/picture.h"

#include <cstdint>

namespace braid::images {

struct TileGrid {
  std::int32_t rows = 1;
  std::int32_t columns = 1;

  std::int32_t count() const { return rows * columns; }
};

// Of all grids with `least` to `most` tiles the one whose shape is nearest to the picture's. Of several the last one counts, in order of
// tiles and then of columns, for which the picture has more than half as many pixels as the tiles together, each of `tile_area`.
TileGrid best_grid(Size picture, std::int64_t tile_area, std::int32_t least, std::int32_t most);

}  // namespace braid::images
