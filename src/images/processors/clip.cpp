// CLIP's and SigLIP's ways, and LLaVA 1.5's with both: a picture of a fixed size.
#include "images/processors/families.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace braid::images {
namespace {

struct FixedSize {
  std::optional<Size> size;     // to which a picture is resized, whatever the ratio of its sides
  std::int32_t short_edge = 0;  // where that is missing: to which its shorter side is
  std::optional<Size> crop;     // of the middle, after that
  bool squares = false;         // before all, by bars of the mean colour
  std::array<std::uint8_t, 3> bars{};
};

FixedSize read_size(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const bool siglip = settings.processor_class() == "SiglipImageProcessor";
  FixedSize fixed;
  const std::optional<double> side = pictures.number("size");
  const Section both = pictures.member("size");
  fixed.short_edge = both.count("shortest_edge", side && !siglip ? pictures.count("size", 224, 8192) : 0, 8192);
  if (fixed.short_edge == 0) fixed.size = pictures.size("size");
  if (fixed.short_edge == 0 && !fixed.size) {
    siglip ? void(fixed.size = Size{224, 224}) : void(fixed.short_edge = 224);
  }
  if (pictures.flag("do_center_crop", !siglip)) fixed.crop = pictures.size("crop_size").value_or(Size{224, 224});
  fixed.squares = settings.processor_class() == "LlavaImageProcessor" && pictures.flag("do_pad", false);
  const std::vector<double> mean = pictures.numbers("image_mean");
  for (std::size_t c = 0; c < 3; ++c) fixed.bars[c] = static_cast<std::uint8_t>((mean.size() == 3 ? mean[c] : double{kClipMean[c]}) * 255);
  return fixed;
}

Picture squared(const Picture& picture, const std::array<std::uint8_t, 3>& bars) {
  const std::int32_t side = std::max(picture.height, picture.width);
  const std::int32_t top = (side - picture.height) / 2;
  const std::int32_t left = (side - picture.width) / 2;
  Picture out = Picture::empty(side, side);
  for (std::size_t i = 0; i < out.values.size(); i += 3) std::copy_n(bars.begin(), 3, out.values.begin() + static_cast<std::ptrdiff_t>(i));
  for (std::int32_t y = 0; y < picture.height; ++y)
    std::copy_n(picture.row(y), std::ptrdiff_t{picture.width} * 3, out.row(top + y) + std::ptrdiff_t{left} * 3);
  return out;
}

// As torchvision: what is smaller than the crop gets a black border first.
Picture middle_of(const Picture& picture, Size size) {
  const auto begin = [](std::int32_t own, std::int32_t wanted) { return own >= wanted ? (own - wanted) / 2 : -((wanted - own) / 2); };
  return cropped(picture, begin(picture.height, size.height), begin(picture.width, size.width), size);
}

class FixedProcessor final : public Processor {
 public:
  FixedProcessor(PictureRules rules, FixedSize size, std::int32_t patch, std::int32_t other_vectors, std::string mark)
      : rules_(rules), size_(size), patch_(patch), other_vectors_(other_vectors), mark_(std::move(mark)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish&) const override {
    Picture work = size_.squares && picture.height != picture.width ? squared(picture, size_.bars) : picture;
    if (rules_.resizes) {
      Result<Picture> result = resized(work, size_.size.value_or(with_short_edge(work.size(), size_.short_edge)), rules_.kernel);
      if (!result) return result.error();
      work = std::move(*result);
    }
    if (size_.crop) work = middle_of(work, *size_.crop);
    Prepared out;
    add_tile(out.pixels, rules_, work);
    out.pixels.vectors = (work.height / patch_) * (work.width / patch_) + other_vectors_;
    if (out.pixels.vectors < 1) return invalid_argument("the image is too small for this model");
    out.text = repeated(mark_, out.pixels.vectors);
    return out;
  }

 private:
  PictureRules rules_;
  FixedSize size_;
  std::int32_t patch_;
  std::int32_t other_vectors_;  // besides those of the patches
  std::string mark_;
};

}  // namespace

Result<Family> make_clip(const Settings& settings) {
  const bool siglip = settings.processor_class() == "SiglipImageProcessor";
  const Result<PictureRules> rules =
      PictureRules::read(settings.pictures, {Kernel::kBicubic, siglip ? kHalf : kClipMean, siglip ? kHalf : kClipDeviation, true});
  if (!rules) return rules.error();
  // CLIP's tower has a vector for the whole besides those of the patches; the usual choice of features leaves the first one out.
  const bool has_class = settings.model.member("vision_config").text("model_type", "clip_vision_model").starts_with("clip");
  const std::string strategy =
      settings.words.text("vision_feature_select_strategy", settings.model.text("vision_feature_select_strategy", "default"));
  const auto additional = static_cast<std::int32_t>(settings.words.number("num_additional_image_tokens").value_or(has_class ? 1 : 0));
  const std::int32_t others = additional - (strategy == "default" ? 1 : 0);
  const std::string mark = settings.vector_mark("<image>");
  return Family{std::make_unique<FixedProcessor>(*rules, read_size(settings), settings.patch_size(14), others, mark), {mark, mark}};
}

}  // namespace braid::images
