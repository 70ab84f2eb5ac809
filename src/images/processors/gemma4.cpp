// Gemma 4's way: the whole picture as large as a number of vectors allows, in patches of which squares are pooled.
#include "images/processors/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace braid::images {
namespace {

constexpr std::int32_t kFewVectors = 70;  // where a client wants little detail

struct Gemma4 {
  std::int32_t unit = 48;  // pixels of a side that become one vector
  std::int32_t vectors = 280;
  Marks marks;
};

// The largest of so many squares of `unit`, at most, that keeps the ratio of the sides as far as it goes.
Size with_units(Size size, std::int32_t unit, std::int32_t most) {
  const double scale = std::sqrt(static_cast<double>(most) * unit * unit / static_cast<double>(size.area()));
  Size units{static_cast<std::int32_t>(std::floor(scale * size.height / unit)),
             static_cast<std::int32_t>(std::floor(scale * size.width / unit))};
  if (units.height == 0) units = {1, std::min(size.width / size.height, most)};
  if (units.width == 0) units = {std::min(size.height / size.width, most), 1};
  return {units.height * unit, units.width * unit};
}

class Gemma4Processor final : public Processor {
 public:
  Gemma4Processor(PictureRules rules, Gemma4 shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    const std::int32_t most = wish.detail == ImageDetail::kLow ? std::min(shape_.vectors, kFewVectors) : shape_.vectors;
    const Result<Picture> work = resized(picture, with_units(picture.size(), shape_.unit, most), rules_.kernel);
    if (!work) return work.error();
    Prepared out;
    add_tile(out.pixels, rules_, *work);
    out.pixels.vectors = (work->height / shape_.unit) * (work->width / shape_.unit);
    out.text = "<|image>" + repeated(shape_.marks.vector, out.pixels.vectors) + "<image|>";
    return out;
  }

 private:
  PictureRules rules_;
  Gemma4 shape_;
};

}  // namespace

Result<Family> make_gemma4(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kBicubic, {0, 0, 0}, {1, 1, 1}, false});
  if (!rules) return rules.error();
  Gemma4 shape;
  shape.unit = settings.patch_size(16) * pictures.count("pooling_kernel_size", 3, 16);
  shape.vectors = pictures.count("max_soft_tokens", 280, 4096);
  shape.marks = {settings.vector_mark("<|image|>"), settings.vector_mark("<|image|>")};
  const Marks marks = shape.marks;
  return Family{std::make_unique<Gemma4Processor>(*rules, std::move(shape)), marks};
}

}  // namespace braid::images
