// LLaVA-NeXT's way, and LLaVA-OneVision's: a small picture of the whole, and tiles of a picture that is fitted into one of some sizes.
#include "images/processors/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid::images {
namespace {

// The one that keeps most of the picture, and of several that one which wastes least.
Size best_size(Size picture, const std::vector<Size>& sizes) {
  Size best = sizes.front();
  std::int64_t most_kept = 0;
  std::int64_t least_wasted = std::numeric_limits<std::int64_t>::max();
  for (const Size& size : sizes) {
    const double scale = std::min(static_cast<double>(size.width) / picture.width, static_cast<double>(size.height) / picture.height);
    const Size scaled{static_cast<std::int32_t>(picture.height * scale), static_cast<std::int32_t>(picture.width * scale)};
    const std::int64_t kept = std::min(scaled.area(), picture.area());
    const std::int64_t wasted = size.area() - kept;
    if (kept < most_kept || (kept == most_kept && wasted >= least_wasted)) continue;
    most_kept = kept;
    least_wasted = wasted;
    best = size;
  }
  return best;
}

// The picture's size as it fits into a larger one, its sides' ratio kept.
Size fitted(Size picture, Size into) {
  const double across = static_cast<double>(into.width) / picture.width;
  const double down = static_cast<double>(into.height) / picture.height;
  if (across < down) return {std::min(static_cast<std::int32_t>(std::ceil(picture.height * across)), into.height), into.width};
  return {into.height, std::min(static_cast<std::int32_t>(std::ceil(picture.width * down)), into.width)};
}

// Of a grid of patches, those that show the picture and not the bars beside it.
Size without_bars(Size picture, Size grid) {
  const auto fit = [](double value) { return static_cast<std::int32_t>(round_even(value * 1e7) / 1e7); };
  const double ratio = static_cast<double>(picture.width) / picture.height;
  if (ratio > static_cast<double>(grid.width) / grid.height) {
    const std::int32_t height = fit(picture.height * (static_cast<double>(grid.width) / picture.width));
    grid.height -= (grid.height - height) / 2 * 2;
  } else {
    const std::int32_t width = fit(picture.width * (static_cast<double>(grid.height) / picture.height));
    grid.width -= (grid.width - width) / 2 * 2;
  }
  return grid;
}

struct AnyRes {
  Size tile;
  std::vector<Size> sizes;      // in pixels
  std::int32_t patches = 0;     // of a tile's side
  std::int32_t others = 0;      // vectors of the overview besides those of its patches
  std::int32_t most_tiles = 0;  // as many vectors as so many tiles have, at most; 0: no bound
  // Around a picture that is not square, of several, which are shown whole; none: each is shown as if it were alone.
  std::optional<std::array<std::uint8_t, 3>> ground;
  std::string mark;
};

class AnyResProcessor final : public Processor {
 public:
  AnyResProcessor(PictureRules rules, AnyRes shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    return shape_.ground && !wish.is_alone ? prepare_whole(picture) : prepare_tiles(picture);
  }

 private:
  // A tile, and what ends its rows.
  Result<Prepared> prepare_whole(const Picture& picture) const {
    const Result<Picture> work = resized_on_square(picture, *shape_.ground, shape_.tile, rules_.kernel);
    if (!work) return work.error();
    Prepared out;
    add_tile(out.pixels, rules_, *work);
    out.pixels.vectors = shape_.patches * shape_.patches + shape_.others + 1;
    out.text = repeated(shape_.mark, out.pixels.vectors);
    return out;
  }

  Result<Prepared> prepare_tiles(const Picture& picture) const {
    const Size whole = best_size(picture.size(), shape_.sizes);
    const Size inner = fitted(picture.size(), whole);
    const Result<Picture> overview = resized(picture, shape_.tile, rules_.kernel);
    if (!overview) return overview.error();
    const Result<Picture> scaled = resized(picture, inner, rules_.kernel);
    if (!scaled) return scaled.error();
    Prepared out;
    out.pixels.overview = 0;
    add_tile(out.pixels, rules_, *overview);
    const std::int32_t top = (whole.height - inner.height) / 2;
    const std::int32_t left = (whole.width - inner.width) / 2;
    add_tiles(out.pixels, rules_, cropped(*scaled, -top, -left, whole), shape_.tile);
    out.pixels.vectors = shape_.patches * shape_.patches + shape_.others + tile_vectors(picture.size(), out.pixels);
    out.text = repeated(shape_.mark, out.pixels.vectors);
    return out;
  }

  // Of the tiles together: one for each patch and one at the end of each row.
  std::int32_t tile_vectors(Size picture, const Pixels& pixels) const {
    Size grid = without_bars(picture, {shape_.patches * pixels.grid_rows, shape_.patches * pixels.grid_columns});
    if (shape_.most_tiles > 0) {
      const double ratio = std::sqrt(static_cast<double>(grid.area()) / (double{1} * shape_.most_tiles * shape_.patches * shape_.patches));
      if (ratio > 1.1) grid = {static_cast<std::int32_t>(grid.height / ratio), static_cast<std::int32_t>(grid.width / ratio)};
    }
    return static_cast<std::int32_t>(grid.area()) + grid.height;
  }

  PictureRules rules_;
  AnyRes shape_;
};

// Sizes are multiples of the tile's.
Result<void> check(const AnyRes& shape) {
  for (const Size& size : shape.sizes)
    if (size.height % shape.tile.height != 0 || size.width % shape.tile.width != 0 || size.area() > 50'000'000)
      return Error{ErrorCode::kUnsupported, "the model's image_grid_pinpoints are no multiples of its tiles", ""};
  if (shape.patches < 1) return Error{ErrorCode::kUnsupported, "the model's patches are larger than its tiles", ""};
  return {};
}

Size tile_of(const Section& pictures, std::int32_t fallback) {
  if (const std::optional<Size> crop = pictures.size("crop_size"); crop && pictures.flag("do_center_crop", true)) return *crop;
  if (const std::optional<Size> size = pictures.size("size")) return *size;
  const std::int32_t side = pictures.member("size").count("shortest_edge", fallback, 8192);
  return {side, side};
}

// Of the picture's sizes, those in the model's config.json count where the processor has none.
std::vector<Size> sizes_of(const Settings& settings) {
  std::vector<Size> sizes = settings.pictures.sizes("image_grid_pinpoints");
  return sizes.empty() ? settings.model.sizes("image_grid_pinpoints") : sizes;
}

}  // namespace

Result<Family> make_llava_next(const Settings& settings) {
  const Result<PictureRules> rules = PictureRules::read(settings.pictures, {Kernel::kBicubic, kClipMean, kClipDeviation, true});
  if (!rules) return rules.error();
  AnyRes shape;
  shape.tile = tile_of(settings.pictures, 336);
  shape.sizes = sizes_of(settings);
  if (shape.sizes.empty()) shape.sizes = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  const bool has_class = settings.model.member("vision_config").text("model_type", "clip_vision_model").starts_with("clip");
  const std::string strategy =
      settings.words.text("vision_feature_select_strategy", settings.model.text("vision_feature_select_strategy", "default"));
  shape.patches = shape.tile.height / settings.patch_size(14);
  shape.others = static_cast<std::int32_t>(settings.words.number("num_additional_image_tokens").value_or(has_class ? 1 : 0)) -
                 (strategy == "default" ? 1 : 0);
  shape.mark = settings.vector_mark("<image>");
  const Result<void> possible = check(shape);
  if (!possible) return possible.error();
  const std::string mark = shape.mark;
  return Family{std::make_unique<AnyResProcessor>(*rules, std::move(shape)), {mark, mark}};
}

Result<Family> make_llava_onevision(const Settings& settings) {
  const Result<PictureRules> rules = PictureRules::read(settings.pictures, {Kernel::kBicubic, kClipMean, kClipDeviation, true});
  if (!rules) return rules.error();
  AnyRes shape;
  shape.tile = settings.pictures.size("size").value_or(Size{384, 384});
  shape.sizes = sizes_of(settings);
  const bool has_sizes = !shape.sizes.empty();
  for (std::int32_t row = 1; row <= 6 && !has_sizes; ++row)
    for (std::int32_t column = 1; column <= 6; ++column) shape.sizes.push_back({384 * row, 384 * column});
  const std::int32_t all = shape.tile.height / settings.patch_size(14);
  const std::int32_t vectors = settings.words.count("num_image_tokens", all * all);
  shape.patches = static_cast<std::int32_t>(std::sqrt(vectors));
  shape.others =
      vectors - shape.patches * shape.patches - (settings.words.text("vision_feature_select_strategy", "full") == "default" ? 1 : 0);
  const std::string bound = settings.words.text("vision_aspect_ratio", settings.model.text("vision_aspect_ratio", "anyres_max_9"));
  shape.most_tiles = bound.starts_with("anyres_max_") ? std::atoi(bound.c_str() + 11) : 9;
  shape.ground.emplace();
  const std::vector<double> mean = settings.pictures.numbers("image_mean");
  for (std::size_t c = 0; c < 3; ++c)
    (*shape.ground)[c] = static_cast<std::uint8_t>(std::clamp(mean.size() == 3 ? mean[c] : double{kClipMean[c]}, 0.0, 1.0) * 255);
  shape.mark = settings.vector_mark("<image>");
  const Result<void> possible = check(shape);
  if (!possible) return possible.error();
  const std::string mark = shape.mark;
  return Family{std::make_unique<AnyResProcessor>(*rules, std::move(shape)), {mark, mark}};
}

}  // namespace braid::images
