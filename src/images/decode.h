// Image files to pictures: JPEG, PNG, WebP, GIF (the first frame) and BMP.
#pragma once

#include "braid/result.h"
#include "images/picture.h"

#include <cstdint>
#include <string_view>

namespace braid::images {

struct DecodeLimits {
  std::int64_t pixels = 50'000'000;
  std::int32_t side = 30'000;
};

// What the file shows, upright as its EXIF data has it, as 8 bits of R, G and B: what is transparent has the colour that the file gives it,
// and of 16 bits the upper eight count. This is what transformers' load_image makes of it.
// kInvalidArgument: it is none of these formats, it is broken or cut off, or its picture is larger than the limits. The size is read from the
// header before anything of that size is allocated. Any thread.
Result<Picture> decode(std::string_view file, const DecodeLimits& limits = {});

}  // namespace braid::images
