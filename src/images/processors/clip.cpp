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

class FixedProcessor final : public Processor {
 public:
  FixedProcessor(PictureRules rules, FixedSize size, std::int32_t patch, std::int32_t other_vectors, std::string mark)
      : rules_(rules), size_(size), patch_(patch), other_vectors_(other_vectors), mark_(std::move(mark)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish&) const override {
    const Result<Picture> work = sized(picture);
    if (!work) return work.error();
    Prepared out;
    add_tile(out.pixels, rules_, *work);
    out.pixels.vectors = (work->height / patch_) * (work->width / patch_) + other_vectors_;
    if (out.pixels.vectors < 1) return invalid_argument("the image is too small for this model");
    out.text = repeated(mark_, out.pixels.vectors);
    return out;
  }

 private:
  // Of what is cropped then only the middle is made. As torchvision: what is smaller than the crop gets a black border.
  Result<Picture> sized(const Picture& picture) const {
    const bool squares = size_.squares && picture.height != picture.width;
    const std::int32_t longer = std::max(picture.height, picture.width);
    const Size own = squares ? Size{longer, longer} : picture.size();
    const Size whole = !rules_.resizes ? own : size_.size.value_or(with_short_edge(own, size_.short_edge));
    const Size shown = size_.crop.value_or(whole);
    const auto begin = [](std::int32_t side, std::int32_t wanted) { return side >= wanted ? (side - wanted) / 2 : -((wanted - side) / 2); };
    const std::int32_t top = begin(whole.height, shown.height);
    const std::int32_t left = begin(whole.width, shown.width);
    if (!squares) return resized_part(picture, whole, rules_.kernel, top, left, shown);
    const Result<Picture> square = resized_on_square(picture, size_.bars, whole, rules_.kernel);
    if (!square) return square.error();
    return cropped(*square, top, left, shown);
  }

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
