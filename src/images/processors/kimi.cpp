// Kimi K2.5's way: the whole picture, shrunk if need be, with black at its right and lower edge up to whole patches.
#include "images/processors/families.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace braid::images {
namespace {

constexpr std::int32_t kFewPatches = 1296;  // where a client wants little detail

struct Kimi {
  std::int32_t patch = 14;
  std::int32_t merge = 2;
  std::int32_t most_patches = 16'384;
  std::int32_t most_side = 512;  // in patches
  std::string mark;
};

class KimiProcessor final : public Processor {
 public:
  KimiProcessor(PictureRules rules, Kimi shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    const std::int32_t most = wish.detail == ImageDetail::kLow ? std::min(shape_.most_patches, kFewPatches) : shape_.most_patches;
    const double patches = double{1} * std::max(picture.height / shape_.patch, 1) * std::max(picture.width / shape_.patch, 1);
    const double side = double{1} * shape_.most_side * shape_.patch;
    const double scale = std::min({1.0, std::sqrt(most / patches), side / picture.height, side / picture.width});
    const auto scaled = [&](std::int32_t own) {
      return std::min(std::max(1, static_cast<std::int32_t>(own * scale)), shape_.most_side * shape_.patch);
    };
    const Result<Picture> work = resized(picture, {scaled(picture.height), scaled(picture.width)}, rules_.kernel);
    if (!work) return work.error();
    const std::int32_t unit = shape_.patch * shape_.merge;
    const Size whole{(work->height + unit - 1) / unit * unit, (work->width + unit - 1) / unit * unit};
    Prepared out;
    add_tile(out.pixels, rules_, cropped(*work, 0, 0, whole));
    out.pixels.vectors = (whole.height / unit) * (whole.width / unit);
    out.text = repeated(shape_.mark, out.pixels.vectors);
    return out;
  }

 private:
  PictureRules rules_;
  Kimi shape_;
};

}  // namespace

Result<Family> make_kimi(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kBicubic, kHalf, kHalf, true});
  if (!rules) return rules.error();
  Kimi shape;
  shape.patch = settings.patch_size(14);
  shape.merge = pictures.count("merge_size", 2, 16);
  shape.most_patches = pictures.count("max_patches", 16'384, 65'536);
  shape.most_side = pictures.member("size").count("max_height", 512, 4096);
  shape.mark = settings.vector_mark("<|media_pad|>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<KimiProcessor>(*rules, std::move(shape)), {mark, mark}};
}

}  // namespace braid::images
