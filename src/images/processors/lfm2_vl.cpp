// LFM2-VL's way: a picture of a bounded area as a whole, and of a larger one tiles and a small picture behind them.
#include "images/processors/bounded_area.h"
#include "images/processors/families.h"
#include "images/processors/tile_grid.h"

#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::images {
namespace {

struct Lfm2Vl {
  std::int32_t tile = 512;  // a side
  std::int32_t unit = 32;   // pixels of a side that become one vector
  std::int32_t least_vectors = 64;
  std::int32_t most_vectors = 256;
  std::int32_t least_tiles = 2;
  std::int32_t most_tiles = 10;
  double tolerance = 2;  // how many times too large a picture must be to be cut
  bool splits = true;
  bool overview = true;
  std::string mark;
};

class Lfm2VlProcessor final : public Processor {
 public:
  Lfm2VlProcessor(PictureRules rules, Lfm2Vl shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    const std::int64_t square = std::int64_t{shape_.unit} * shape_.unit;
    const Size small = bounded_area(picture.size(), shape_.unit, shape_.least_vectors * square, shape_.most_vectors * square, shape_.unit);
    const bool cuts = shape_.splits && wish.detail != ImageDetail::kLow && is_large(picture.size());
    const TileGrid grid =
        cuts ? best_grid(picture.size(), std::int64_t{shape_.tile} * shape_.tile, shape_.least_tiles, shape_.most_tiles) : TileGrid{};
    Prepared out;
    if (cuts) {
      const Result<Picture> work = resized(picture, {shape_.tile * grid.rows, shape_.tile * grid.columns}, rules_.kernel);
      if (!work) return work.error();
      add_tiles(out.pixels, rules_, *work, {shape_.tile, shape_.tile});
    }
    if (!cuts || (shape_.overview && grid.count() > 1)) {
      if (cuts) out.pixels.overview = grid.count();
      const Result<Picture> work = resized(picture, small, rules_.kernel);
      if (!work) return work.error();
      add_tile(out.pixels, rules_, *work);
    }
    for (const PixelTile& tile : out.pixels.tiles) out.pixels.vectors += vectors_of(tile);
    out.text = text_of(out.pixels);
    return out;
  }

 private:
  bool is_large(Size size) const {
    const auto nearest = [&](std::int32_t side) {
      return std::max(static_cast<std::int64_t>(round_even(static_cast<double>(side) / shape_.unit)) * shape_.unit, std::int64_t{1});
    };
    const double most = static_cast<double>(shape_.most_vectors) * shape_.unit * shape_.unit * shape_.tolerance;
    return static_cast<double>(nearest(size.height) * nearest(size.width)) > most;
  }

  std::int32_t vectors_of(const PixelTile& tile) const { return (tile.height / shape_.unit) * (tile.width / shape_.unit); }

  std::string text_of(const Pixels& pixels) const {
    std::string text = "<|image_start|>";
    const bool several = pixels.grid_rows * pixels.grid_columns > 1;
    for (std::size_t i = 0; i < pixels.tiles.size(); ++i) {
      const auto place = static_cast<std::int32_t>(i);
      if (several && place == pixels.overview)
        text += "<|img_thumbnail|>";
      else if (several)
        text += fmt::format("<|img_row_{}_col_{}|>", place / pixels.grid_columns + 1, place % pixels.grid_columns + 1);
      text += repeated(shape_.mark, vectors_of(pixels.tiles[i]));
    }
    return text + "<|image_end|>";
  }

  PictureRules rules_;
  Lfm2Vl shape_;
};

}  // namespace

Result<Family> make_lfm2_vl(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kBilinear, kHalf, kHalf, true});
  if (!rules) return rules.error();
  Lfm2Vl shape;
  const std::int32_t patch = pictures.count("encoder_patch_size", 16, 256);
  shape.unit = patch * pictures.count("downsample_factor", 2, 16);
  shape.tile = pictures.count("tile_size", 512, 4096);
  shape.least_vectors = pictures.count("min_image_tokens", 64, 65'536);
  shape.most_vectors = std::max(pictures.count("max_image_tokens", 256, 65'536), shape.least_vectors);
  shape.least_tiles = pictures.count("min_tiles", 2, 64);
  shape.most_tiles = std::max(pictures.count("max_tiles", 10, 64), shape.least_tiles);
  shape.tolerance = pictures.number("max_pixels_tolerance").value_or(2.0);
  shape.splits = pictures.flag("do_image_splitting", true) && shape.most_tiles > 1;
  shape.overview = pictures.flag("use_thumbnail", true);
  if (shape.tile % shape.unit != 0) return Error{ErrorCode::kUnsupported, "the model's tiles are no multiples of its patches", ""};
  shape.mark = settings.vector_mark("<image>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<Lfm2VlProcessor>(*rules, std::move(shape)), {mark, mark}};
}

}  // namespace braid::images
