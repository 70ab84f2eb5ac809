// Idefics3's way, and SmolVLM's: tiles of a fixed size, and a small picture of the whole behind them.
#include "images/processors/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace braid::images {
namespace {

constexpr std::int32_t kLongestSide = 4096;

struct Split {
  std::int32_t longest_edge = 0;  // to which the picture is resized first
  std::int32_t tile = 0;          // a side
  bool splits = true;
  std::int32_t vectors = 0;  // of a tile
  std::string mark;
};

// Its longer side becomes `edge`; the other one is even.
Size with_long_edge(Size size, std::int32_t edge) {
  const double ratio = static_cast<double>(size.width) / size.height;
  Size out;
  if (size.width >= size.height) {
    out = {static_cast<std::int32_t>(edge / ratio), edge};
    out.height += out.height % 2;
  } else {
    out = {edge, static_cast<std::int32_t>(edge * ratio)};
    out.width += out.width % 2;
  }
  return {std::max(out.height, 1), std::max(out.width, 1)};
}

Size bounded(Size size, std::int32_t edge) {
  const double ratio = static_cast<double>(size.width) / size.height;
  if (size.width >= size.height && size.width > edge) size = {static_cast<std::int32_t>(edge / ratio), edge};
  if (size.height > size.width && size.height > edge) size = {edge, static_cast<std::int32_t>(edge * ratio)};
  return {std::max(size.height, 1), std::max(size.width, 1)};
}

std::int32_t up_to_multiple(std::int32_t value, std::int32_t of) { return (value + of - 1) / of * of; }

// Both sides multiples of the tile's, the ratio kept as far as it goes.
Size in_whole_tiles(Size size, std::int32_t tile) {
  const double ratio = static_cast<double>(size.width) / size.height;
  if (size.width >= size.height) {
    const std::int32_t width = up_to_multiple(size.width, tile);
    return {up_to_multiple(static_cast<std::int32_t>(width / ratio), tile), width};
  }
  const std::int32_t height = up_to_multiple(size.height, tile);
  return {height, up_to_multiple(static_cast<std::int32_t>(height * ratio), tile)};
}

class SplitProcessor final : public Processor {
 public:
  SplitProcessor(PictureRules rules, Split shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    Result<Picture> work = resized(picture, bounded(with_long_edge(picture.size(), shape_.longest_edge), kLongestSide), rules_.kernel);
    if (!work) return work.error();
    const Size tile{shape_.tile, shape_.tile};
    Prepared out;
    if (shape_.splits && wish.detail != ImageDetail::kLow) {
      work = resized(*work, in_whole_tiles(work->size(), shape_.tile), rules_.kernel);
      if (!work) return work.error();
      if (work->height > shape_.tile || work->width > shape_.tile) add_tiles(out.pixels, rules_, *work, tile);
    }
    if (out.pixels.grid_rows > 0) out.pixels.overview = static_cast<std::int32_t>(out.pixels.tiles.size());
    const Result<Picture> overview = resized(*work, tile, rules_.kernel);
    if (!overview) return overview.error();
    add_tile(out.pixels, rules_, *overview);
    out.pixels.vectors = static_cast<std::int32_t>(out.pixels.tiles.size()) * shape_.vectors;
    out.text = text_of(out.pixels);
    return out;
  }

 private:
  std::string text_of(const Pixels& pixels) const {
    const std::string vectors = repeated(shape_.mark, shape_.vectors);
    const std::string fake = "<fake_token_around_image>";
    std::string text;
    for (std::int32_t row = 1; row <= pixels.grid_rows; ++row) {
      for (std::int32_t column = 1; column <= pixels.grid_columns; ++column)
        text += fmt::format("{}<row_{}_col_{}>{}", fake, row, column, vectors);
      text += '\n';
    }
    return text + (pixels.grid_rows > 0 ? "\n" : "") + fake + "<global-img>" + vectors + fake;
  }

  PictureRules rules_;
  Split shape_;
};

}  // namespace

Result<Family> make_idefics3(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const bool smol = settings.processor_class() == "SmolVLMImageProcessor";
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kLanczos, kHalf, kHalf, true});
  if (!rules) return rules.error();
  Split shape;
  shape.tile = pictures.member("max_image_size").count("longest_edge", 364, kLongestSide);
  shape.longest_edge = pictures.member("size").count("longest_edge", 4 * 364, kLongestSide);
  shape.splits = pictures.flag("do_image_splitting", true);
  const std::int32_t patches = shape.tile / settings.patch_size(14);
  const std::int32_t scale = settings.model.count("scale_factor", smol ? 4 : 2, 64);
  shape.vectors = settings.words.count("image_seq_len", std::max(patches * patches / (scale * scale), 1));
  shape.mark = settings.vector_mark("<image>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<SplitProcessor>(*rules, std::move(shape)), {mark, mark}};
}

}  // namespace braid::images
