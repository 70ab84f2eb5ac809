#include "model/images/image_tower.h"

#include "model/images/tile_mosaic.h"
#include "model/images/tower_pass.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::model {
namespace {

constexpr std::int32_t kMostPixels = 1 << 15;  // of a tile's side

Error refused(const std::string& why) { return {ErrorCode::kInvalidArgument, "the image cannot be read by this model: " + why, {}}; }

}  // namespace

// Everything that an address is computed from. What a tile has beyond its last patches is not looked at.
Result<void> ImageTower::check(const Pixels& pixels) const {
  const std::int32_t side = shape_.unit();
  std::int64_t values = 0;
  std::int64_t vectors = 0;
  if (pixels.tiles.empty()) return refused("it has no tiles");
  for (const PixelTile& tile : pixels.tiles) {
    const std::int32_t rows = tile.height / shape_.patch;
    const std::int32_t columns = tile.width / shape_.patch;
    if (tile.height < shape_.patch || tile.width < shape_.patch || rows % side != 0 || columns % side != 0 || tile.height > kMostPixels ||
        tile.width > kMostPixels)
      return refused(fmt::format("a tile has {} by {} pixels, expected multiples of {}", tile.width, tile.height, shape_.patch * side));
    const std::int64_t patches = std::int64_t{rows} * columns;
    if (shape_.places == PatchPlaces::kEach && (patches != shape_.encoder.context || rows != columns))
      return refused(fmt::format("a tile has {} by {} pixels, that is {} patches; expected {} in a square", tile.width, tile.height,
                                 patches, shape_.encoder.context));
    if (shape_.places == PatchPlaces::kCrossed && std::max(rows, columns) > shape_.encoder.context / 2)
      return refused(
          fmt::format("a tile has {} by {} patches, more than the {} places of a side", columns, rows, shape_.encoder.context / 2));
    values += kPlanes * tile.height * tile.width;
    vectors += shape_.vectors_of(patches);
  }
  if (std::cmp_not_equal(pixels.values.size(), values)) return refused(fmt::format("{} values for {}", pixels.values.size(), values));
  if (shape_.order != TileOrder::kAsTheyCome) {
    const auto tiles = static_cast<std::int64_t>(pixels.tiles.size());
    const bool is_cut = pixels.overview >= 0;
    if (is_cut ? tiles != std::int64_t{pixels.grid_rows} * pixels.grid_columns + 1 || pixels.overview >= tiles ||
                     pixels.original_height < 1 || pixels.original_width < 1
               : tiles != 1)
      return refused("its tiles are no grid");
    const std::int32_t shown = pixels.tiles.front().height / shape_.patch / side;
    vectors = std::int64_t{shown} * shown + (is_cut ? mosaic_size(shape_, pixels, shown).vectors() : 1);
  }
  if (vectors != pixels.vectors) return refused(fmt::format("{} tokens stand for {} vectors", pixels.vectors, vectors));
  return {};
}

std::unique_ptr<step::ImagePass> ImageTower::begin(SharedPixels pixels) { return std::make_unique<TowerPass>(*this, std::move(pixels)); }

}  // namespace braid::model
