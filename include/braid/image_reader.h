// Image files to what a model reads. Implemented by `images`, used by `net`.
#pragma once

#include "braid/generation_request.h"
#include "braid/pixels.h"
#include "braid/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

// How closely a client wants an image to be looked at (OpenAI's `detail`).
enum class ImageDetail : std::uint8_t {
  kAuto,  // as the model's processor does it
  kLow,   // an image that would be cut, or take more vectors than a small one needs, is shown as a whole, small
  kHigh,  // as kAuto
};

struct ImageWish {
  ImageDetail detail = ImageDetail::kAuto;
  std::int32_t place = 0;  // among the images of its conversation
  bool is_alone = true;    // there are no others

  bool operator==(const ImageWish&) const = default;
};

struct ReadImage {
  SharedPixels pixels;
  // What stands in the prompt for the image: vector_token's text once for each vector, in their order, among the model's own marks of rows,
  // tiles and ends.
  std::string text;
};

// Immutable after construction: every member may be called from any thread.
class ImageReader {
 public:
  virtual ~ImageReader() = default;

  // The bytes of a JPEG, PNG, WebP, GIF or BMP file. kInvalidArgument: it is none, is broken, or its picture is too large; nothing of the
  // picture's size is allocated before its header has been checked.
  virtual Result<ReadImage> read(std::string_view file, const ImageWish& wish) const = 0;

  // What the model's chat template writes in the place of an image: ReadImage::text takes its place.
  virtual std::string_view placeholder() const = 0;

  // The token that stands for one vector of an image.
  virtual TokenId vector_token() const = 0;
};

}  // namespace braid
