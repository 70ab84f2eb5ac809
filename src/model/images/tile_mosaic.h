// The vectors of an image that was cut into tiles, put together as LLaVA-NeXT and LLaVA-OneVision do.
#pragma once

#include "braid/pixels.h"
#include "model/images/tower_shape.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// Rows and columns of vectors that a mosaic shows: what of the tiles' grid lies within the image, made smaller if need be.
struct MosaicSize {
  std::int32_t top = 0, rows = 0;      // of the whole grid's rows
  std::int32_t left = 0, columns = 0;  //
  std::int32_t shown_rows = 0, shown_columns = 0;

  std::int64_t vectors() const { return std::int64_t{shown_rows} * (shown_columns + 1); }
};

// `side`: vectors of a tile's side.
MosaicSize mosaic_size(const TowerShape& shape, const Pixels& pixels, std::int32_t side);

// `tiles`: vectors of all tiles, [tiles, side * side, width].
std::vector<float> mosaic(const TowerShape& shape, const Pixels& pixels, std::int32_t side, std::span<const float> newline,
                          const std::vector<float>& tiles);

}  // namespace braid::model
