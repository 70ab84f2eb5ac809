// Where the patches of an image's tiles lie, in which order the tower has them, and what their places add.
#pragma once

#include "braid/pixels.h"
#include "model/encoders/encoder_attention.h"
#include "model/encoders/encoder_layers.h"
#include "model/images/tower_shape.h"

#include <cstdint>
#include <span>
#include <vector>

namespace braid::model {

// The patches of a tile. Rows of the tower are its first vector, if there is one, and the patches, windows one after the other.
struct PatchGrid {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::int64_t begin = 0;            // the tower's row of the tile's first
  std::vector<std::int32_t> order;   // by the tower's row, behind the first vector: row * columns + column of the patch
  std::vector<std::int32_t> places;  // the inverse: by patch, the tower's row from `begin` on
  std::vector<std::int32_t> parts;   // how many rows of the tower each window has, in their order; empty: there are none

  std::int64_t count(bool has_first) const { return static_cast<std::int64_t>(order.size()) + (has_first ? 1 : 0); }
};

// Of all tiles of pixels that the shape allows.
std::vector<PatchGrid> patch_grids(const TowerShape& shape, const Pixels& pixels);
// What is left of them when squares of so many a side have become one each: row by row, without a first vector.
std::vector<PatchGrid> reduced_grids(const std::vector<PatchGrid>& grids, std::int32_t side);

std::vector<TextRows> rows_of_tiles(const TowerShape& shape, const std::vector<PatchGrid>& grids);
std::vector<TextRows> rows_of_parts(const TowerShape& shape, const std::vector<PatchGrid>& grids);  // empty without windows
std::vector<RowAngles> patch_angles(const TowerShape& shape, const std::vector<PatchGrid>& grids);  // empty without rotation

// The table of places, a square of vectors of `width`, as a vector for each patch of a tile: [rows * columns, width].
std::vector<float> smoothed_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns);
std::vector<float> blended_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns);
std::vector<float> nearest_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns);
std::vector<float> cubic_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns);
// The table has as many vectors for columns as for rows, at least as many as there are.
std::vector<float> crossed_places(std::span<const float> table, std::int64_t width, std::int32_t rows, std::int32_t columns);

}  // namespace braid::model
