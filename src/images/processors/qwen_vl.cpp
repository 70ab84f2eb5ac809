// Qwen2-VL's way, and that of its successors: the whole picture, its area bounded, in patches that are merged.
#include "images/processors/bounded_area.h"
#include "images/processors/families.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace braid::images {
namespace {

constexpr std::int64_t kSmallArea = 512 * 512;  // where a client wants little detail

struct QwenVl {
  std::int32_t unit = 28;  // pixels of a side that become one vector
  std::int64_t least = 56 * 56;
  std::int64_t most = 28 * 28 * 1280;
  std::string mark;
};

class QwenVlProcessor final : public Processor {
 public:
  QwenVlProcessor(PictureRules rules, QwenVl shape) : rules_(rules), shape_(std::move(shape)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish& wish) const override {
    constexpr int kMostRatio = 200;
    if (std::max(picture.height, picture.width) > kMostRatio * std::min(picture.height, picture.width))
      return invalid_argument("the image is too long: this model reads none whose sides differ more than 200 times");
    const std::int64_t most = wish.detail == ImageDetail::kLow ? std::clamp(kSmallArea, shape_.least, shape_.most) : shape_.most;
    const Result<Picture> work = resized(picture, bounded_area(picture.size(), shape_.unit, shape_.least, most, 0), rules_.kernel);
    if (!work) return work.error();
    Prepared out;
    add_tile(out.pixels, rules_, *work);
    out.pixels.vectors = (work->height / shape_.unit) * (work->width / shape_.unit);
    out.text = repeated(shape_.mark, out.pixels.vectors);
    return out;
  }

 private:
  PictureRules rules_;
  QwenVl shape_;
};

}  // namespace

Result<Family> make_qwen_vl(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kBicubic, kClipMean, kClipDeviation, true});
  if (!rules) return rules.error();
  QwenVl shape;
  shape.unit = settings.patch_size(14) * pictures.count("merge_size", 2, 16);
  const Section size = pictures.member("size");
  const auto area = [&](const char* name, const char* edge, std::int64_t fallback) {
    const double given = pictures.number(name).value_or(size.number(edge).value_or(static_cast<double>(fallback)));
    return static_cast<std::int64_t>(std::clamp(given, 1.0, 50e6));
  };
  shape.least = area("min_pixels", "shortest_edge", shape.least);
  shape.most = std::max(area("max_pixels", "longest_edge", shape.most), shape.least);
  shape.mark = settings.vector_mark("<|image_pad|>");
  const std::string mark = shape.mark;
  return Family{std::make_unique<QwenVlProcessor>(*rules, std::move(shape)), {mark, mark}};
}

}  // namespace braid::images
