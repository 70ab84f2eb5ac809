// Pictures of another size, as Pillow and torchvision make them.
#pragma once

#include "braid/result.h"
#include "images/picture.h"

#include <array>
#include <cstdint>

namespace braid::images {

enum class Kernel : std::uint8_t {
  kBilinear,
  kBicubic,  // with a = -0.5
  kLanczos,  // of three lobes
  kPillowBicubic,
};

// A picture that shrinks is smoothed: the kernel grows with the scale. First the rows are resized, then the columns, and both results are
// rounded to 8 bits. Weights are whole numbers: for kLanczos and kPillowBicubic with Pillow's 22 bits behind the point, for the others with as
// many as leave the largest one 15 bits, as torch has them; so the results are theirs to the bit.
// kInvalidArgument: the size is beyond what is reasonable, because the picture is extremely long.
Result<Picture> resized(const Picture& picture, Size size, Kernel kernel);

// A part of that, of which alone memory is taken; what lies beyond it is black.
Result<Picture> resized_part(const Picture& picture, Size size, Kernel kernel, std::int32_t top, std::int32_t left, Size part);

// A picture in the middle of a square of a colour, resized: what such a square would become that nobody makes. Beyond 7000 pixels a side the
// picture is made smaller first.
Result<Picture> resized_on_square(const Picture& picture, const std::array<std::uint8_t, 3>& ground, Size size, Kernel kernel);

// Of a size whose shorter side is to become `edge`.
Size with_short_edge(Size size, std::int32_t edge);

// A part of a picture; what lies beyond it is black.
Picture cropped(const Picture& picture, std::int32_t top, std::int32_t left, Size size);

}  // namespace braid::images
