// InternVL's way: tiles of a fixed size in a grid of the picture's shape, and a small picture of the whole behind them.
#include "images/processors/families.h"
#include "images/processors/tile_grid.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace braid::images {
namespace {

struct InternVl {
  Size tile;
  std::int32_t least_tiles = 1;
  std::int32_t most_tiles = 12;
  std::int32_t vectors = 256;  // of a tile
  bool overview = true;        // behind several tiles
  std::string mark;
};

class InternVlProcessor final : public Processor {
 public:
  InternVlProcessor(PictureRules rules, InternVl shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    Prepared out;
    const bool whole = wish.detail == ImageDetail::kLow;
    const TileGrid grid = whole ? TileGrid{} : best_grid(picture.size(), shape_.tile.area(), shape_.least_tiles, shape_.most_tiles);
    if (grid.count() > 1) {
      const Result<Picture> work = resized(picture, {shape_.tile.height * grid.rows, shape_.tile.width * grid.columns}, rules_.kernel);
      if (!work) return work.error();
      add_tiles(out.pixels, rules_, *work, shape_.tile);
      if (shape_.overview) out.pixels.overview = grid.count();
    }
    if (grid.count() == 1 || shape_.overview) {
      const Result<Picture> whole_picture = resized(picture, shape_.tile, rules_.kernel);
      if (!whole_picture) return whole_picture.error();
      add_tile(out.pixels, rules_, *whole_picture);
    }
    out.pixels.vectors = static_cast<std::int32_t>(out.pixels.tiles.size()) * shape_.vectors;
    out.text = "<img>" + repeated(shape_.mark, out.pixels.vectors) + "</img>";
    return out;
  }

 private:
  PictureRules rules_;
  InternVl shape_;
};

// Patches of a tile, of which squares become one vector each; 256 where the model says nothing.
std::int32_t vectors_of_tile(const Section& model, std::optional<Size> image) {
  const std::optional<Size> patch = model.member("vision_config").size("patch_size");
  if (!image || !patch) return model.count("image_seq_length", 256);
  const double ratio = model.number("downsample_ratio").value_or(0.5);
  const auto scaled = [ratio](std::int32_t patches) { return static_cast<std::int32_t>(patches * ratio); };
  return std::max(scaled(image->height / patch->height) * scaled(image->width / patch->width), 1);
}

}  // namespace

Result<Family> make_internvl(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kBicubic, kClipMean, kClipDeviation, true});
  if (!rules) return rules.error();
  InternVl shape;
  shape.tile = pictures.size("size").value_or(Size{384, 384});
  // Tiles are made whatever "crop_to_patches" says: InternVL's processor asks for them.
  shape.least_tiles = pictures.count("min_patches", 1, 64);
  shape.most_tiles = pictures.count("max_patches", 12, 64);
  shape.vectors =
      settings.words.count("image_seq_length", vectors_of_tile(settings.model, settings.model.member("vision_config").size("image_size")));
  shape.mark = settings.vector_mark("<IMG_CONTEXT>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<InternVlProcessor>(*rules, std::move(shape)), {mark, mark}};
}

// Pillow resizes, whatever the folder's preprocessor_config.json names; tiles are as config.json says.
Result<Family> make_internvl_chat(const Settings& settings) {
  Result<PictureRules> rules = PictureRules::read(settings.pictures, {Kernel::kPillowBicubic, kImageNetMean, kImageNetDeviation, true});
  if (!rules) return rules.error();
  rules->kernel = Kernel::kPillowBicubic;
  const Section& model = settings.model;
  if (model.flag("pad2square", false))
    return Error{ErrorCode::kUnsupported, "pad2square is set, which this build does not do to images", ""};
  InternVl shape;
  shape.tile = model.size("force_image_size").value_or(model.member("vision_config").size("image_size").value_or(Size{224, 224}));
  const bool cuts = model.flag("dynamic_image_size", false);
  shape.least_tiles = cuts ? model.count("min_dynamic_patch", 1, 64) : 1;
  shape.most_tiles = cuts ? model.count("max_dynamic_patch", 6, 64) : 1;
  shape.overview = model.flag("use_thumbnail", false);
  shape.vectors = vectors_of_tile(model, shape.tile);
  shape.mark = settings.vector_mark("<IMG_CONTEXT>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<InternVlProcessor>(*rules, std::move(shape)), {"<image>", mark}};
}

}  // namespace braid::images
