// MiniCPM-V's way: a small picture of the whole, and slices of a larger one behind it.
#include "images/processors/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace braid::images {
namespace {

struct MiniCpmV {
  std::int32_t most_slices = 9;
  std::int32_t scale = 448;  // a side of the square whose area a picture or slice has
  std::int32_t unit = 56;    // pixels of which its sides are multiples
  std::int32_t patch = 14;
  std::int32_t merged = 16;  // patches that become one vector
  std::int32_t vectors = 0;  // of each picture or slice, where they do not
  bool splits = true;
  bool numbers = true;  // an image is told by its place
  std::string mark;
};

struct SliceGrid {
  std::int32_t rows = 1;
  std::int32_t columns = 1;
};

std::int32_t multiple_near(double value, std::int32_t unit) {
  return std::max(static_cast<std::int32_t>(round_even(value / unit)) * unit, unit);
}

// Of a size that need not be whole.
Size scaled_size(double height, double width, const MiniCpmV& shape, bool may_grow) {
  if (height * width > double{1} * shape.scale * shape.scale || may_grow) {
    const double ratio = width / height;
    height = std::floor(shape.scale / std::sqrt(ratio));
    width = std::floor(height * ratio);
  }
  return {multiple_near(height, shape.unit), multiple_near(width, shape.unit)};
}

// Of about as many slices as the picture is larger than one, the grid of its shape.
std::optional<SliceGrid> slices_of(Size size, const MiniCpmV& shape) {
  const double ratio = static_cast<double>(size.area()) / (double{1} * shape.scale * shape.scale);
  const std::int32_t multiple = std::min(static_cast<std::int32_t>(std::ceil(ratio)), shape.most_slices);
  if (multiple <= 1) return std::nullopt;
  const double log_ratio = std::log(static_cast<double>(size.width) / size.height);
  SliceGrid best;
  double least_off = std::numeric_limits<double>::infinity();
  for (std::int32_t slices = multiple - 1; slices <= multiple + 1; ++slices) {
    if (slices == 1 || slices > shape.most_slices) continue;
    for (std::int32_t wide = 1; wide <= slices; ++wide) {
      if (slices % wide != 0) continue;
      const double off = std::abs(log_ratio - std::log(static_cast<double>(wide) / (slices / wide)));
      if (off >= least_off) continue;
      least_off = off;
      best = {slices / wide, wide};
    }
  }
  return best;
}

class MiniCpmVProcessor final : public Processor {
 public:
  MiniCpmVProcessor(PictureRules rules, MiniCpmV shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    const bool splits = shape_.splits && wish.detail != ImageDetail::kLow;
    const std::optional<SliceGrid> grid = splits ? slices_of(picture.size(), shape_) : std::nullopt;
    const Result<Picture> overview = resized(picture, scaled_size(picture.height, picture.width, shape_, !grid), rules_.kernel);
    if (!overview) return overview.error();
    Prepared out;
    add_tile(out.pixels, rules_, *overview);
    if (grid) {
      out.pixels.overview = 0;
      const auto part = [](std::int32_t side, std::int32_t parts) { return static_cast<double>(multiple_near(side, parts)) / parts; };
      const Size slice = scaled_size(part(picture.height, grid->rows), part(picture.width, grid->columns), shape_, true);
      const Result<Picture> work = resized(picture, {slice.height * grid->rows, slice.width * grid->columns}, rules_.kernel);
      if (!work) return work.error();
      add_tiles(out.pixels, rules_, *work, slice);
    }
    for (const PixelTile& tile : out.pixels.tiles) out.pixels.vectors += vectors_of(tile);
    out.text = (shape_.numbers ? fmt::format("<image_id>{}</image_id>", wish.place) : "") + text_of(out.pixels);
    return out;
  }

 private:
  std::int32_t vectors_of(const PixelTile& tile) const {
    return shape_.vectors > 0 ? shape_.vectors : (tile.height / shape_.patch) * (tile.width / shape_.patch) / shape_.merged;
  }

  std::string text_of(const Pixels& pixels) const {
    std::string text = "<image>" + repeated(shape_.mark, vectors_of(pixels.tiles.front())) + "</image>";
    if (pixels.grid_rows == 0) return text;
    const std::string slice = "<slice>" + repeated(shape_.mark, vectors_of(pixels.tiles.back())) + "</slice>";
    for (std::int32_t row = 0; row < pixels.grid_rows; ++row) text += (row > 0 ? "\n" : "") + repeated(slice, pixels.grid_columns);
    return text;
  }

  PictureRules rules_;
  MiniCpmV shape_;
};

MiniCpmV common_shape(const Settings& settings) {
  const Section& pictures = settings.pictures;
  MiniCpmV shape;
  shape.most_slices = pictures.count("max_slice_nums", 9, 64);
  shape.scale = pictures.count("scale_resolution", 448, 4096);
  shape.patch = settings.patch_size(14);
  shape.splits = pictures.flag("slice_mode", true);
  shape.numbers = pictures.flag("use_image_id", true);
  return shape;
}

}  // namespace

Result<Family> make_minicpm_v(const Settings& settings) {
  const Result<PictureRules> rules = PictureRules::read(settings.pictures, {Kernel::kBicubic, kHalf, kHalf, true});
  if (!rules) return rules.error();
  MiniCpmV shape = common_shape(settings);
  shape.unit = shape.patch * 4;
  shape.merged = settings.pictures.text("downsample_mode", "16x") == "4x" ? 4 : 16;
  shape.mark = settings.vector_mark("<|image_pad|>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<MiniCpmVProcessor>(*rules, std::move(shape)), {mark, mark}};
}

// Pillow resizes; what stands for an image in its chats, before these are tokenised, is in no chat template.
Result<Family> make_older_minicpm_v(const Settings& settings) {
  constexpr double kFirstKnown = 2.6;
  const double version = settings.pictures.number("version").value_or(kFirstKnown);
  if (version < kFirstKnown)
    return Error{ErrorCode::kUnsupported, fmt::format("images of MiniCPM-V {} are not supported, those of 2.6 and later are", version), ""};
  const Result<PictureRules> rules = PictureRules::read(settings.pictures, {Kernel::kPillowBicubic, kHalf, kHalf, true});
  if (!rules) return rules.error();
  MiniCpmV shape = common_shape(settings);
  shape.unit = shape.patch;
  shape.vectors = settings.pictures.count("image_feature_size", settings.model.count("query_num", 64, 4096), 4096);
  shape.mark = settings.pictures.text("unk", settings.vector_mark("<unk>"));
  const std::string mark = shape.mark;
  return Family{std::make_unique<MiniCpmVProcessor>(*rules, std::move(shape)), {"(<image>./</image>)", mark}};
}

}  // namespace braid::images
