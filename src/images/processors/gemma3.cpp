// Gemma 3's way: one picture of a fixed size, between marks of its own. Crops besides (do_pan_and_scan) are not made: its processor in
// transformers makes none unless a caller asks for them, whatever its file says.
#include "images/processors/families.h"

#include <cstdint>
#include <string>
#include <utility>

namespace braid::images {
namespace {

class Gemma3Processor final : public Processor {
 public:
  Gemma3Processor(PictureRules rules, Size size, std::int32_t vectors, Marks marks)
      : rules_(rules), size_(size), vectors_(vectors), marks_(std::move(marks)) {}

  Result<Prepared> prepare(const Picture& picture, const ImageWish&) const override {
    const Result<Picture> work = resized(picture, size_, rules_.kernel);
    if (!work) return work.error();
    Prepared out;
    add_tile(out.pixels, rules_, *work);
    out.pixels.vectors = vectors_;
    out.text = "\n\n" + marks_.placeholder + repeated(marks_.vector, vectors_) + "<end_of_image>\n\n";
    return out;
  }

 private:
  PictureRules rules_;
  Size size_;
  std::int32_t vectors_;
  Marks marks_;
};

}  // namespace

Result<Family> make_gemma3(const Settings& settings) {
  const Section& pictures = settings.pictures;
  const Result<PictureRules> rules = PictureRules::read(pictures, {Kernel::kBilinear, kHalf, kHalf, true});
  if (!rules) return rules.error();
  const Marks marks{"<start_of_image>", settings.vector_mark("<image_soft_token>")};
  const std::int32_t vectors =
      settings.words.count("image_seq_length", pictures.count("image_seq_length", settings.model.count("mm_tokens_per_image", 256)));
  return Family{std::make_unique<Gemma3Processor>(*rules, pictures.size("size").value_or(Size{224, 224}), vectors, marks), marks};
}

}  // namespace braid::images
