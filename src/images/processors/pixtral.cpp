// Pixtral's way, and Mistral 3's: the whole picture, its longer side bounded, in rows of patches.
#include "images/processors/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace braid::images {
namespace {

constexpr std::int32_t kSmallEdge = 512;  // where a client wants little detail

struct Pixtral {
  std::int32_t longest_edge = 1024;
  std::int32_t unit = 16;  // pixels of a side that become one vector
  std::string mark, row_end, end;
};

std::int32_t units_up_to(std::int32_t value, std::int32_t of) { return ((value - 1) / of + 1) * of; }

class PixtralProcessor final : public Processor {
 public:
  PixtralProcessor(PictureRules rules, Pixtral shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    const std::int32_t edge = wish.detail == ImageDetail::kLow ? std::min(shape_.longest_edge, kSmallEdge) : shape_.longest_edge;
    Size size = picture.size();
    const double ratio = static_cast<double>(std::max(size.height, size.width)) / edge;
    if (ratio > 1)
      size = {static_cast<std::int32_t>(std::floor(size.height / ratio)), static_cast<std::int32_t>(std::floor(size.width / ratio))};
    const std::int32_t unit = shape_.unit;
    const Size whole{units_up_to(std::max(size.height, 1), unit), units_up_to(std::max(size.width, 1), unit)};
    const Result<Picture> work = resized(picture, whole, rules_.kernel);
    if (!work) return work.error();
    Prepared out;
    add_tile(out.pixels, rules_, *work);
    const std::int32_t rows = whole.height / unit;
    const std::int32_t columns = whole.width / unit;
    out.pixels.vectors = rows * columns;
    const std::string row = repeated(shape_.mark, columns);
    for (std::int32_t y = 0; y < rows; ++y) out.text += row + (y + 1 < rows ? shape_.row_end : shape_.end);
    return out;
  }

 private:
  PictureRules rules_;
  Pixtral shape_;
};

}  // namespace

Result<Family> make_pixtral(const Settings& settings) {
  const Result<PictureRules> rules = PictureRules::read(settings.pictures, {Kernel::kBicubic, kClipMean, kClipDeviation, true});
  if (!rules) return rules.error();
  Pixtral shape;
  shape.longest_edge = settings.pictures.member("size").count("longest_edge", 1024, 8192);
  shape.unit = settings.patch_size(16) * settings.words.count("spatial_merge_size", settings.model.count("spatial_merge_size", 1, 16), 16);
  shape.mark = settings.vector_mark("[IMG]");
  shape.row_end = settings.words.text("image_break_token", "[IMG_BREAK]");
  shape.end = settings.words.text("image_end_token", "[IMG_END]");
  const std::string mark = shape.mark;
  return Family{std::make_unique<PixtralProcessor>(*rules, std::move(shape)), {mark, mark}};
}

}  // namespace braid::images
