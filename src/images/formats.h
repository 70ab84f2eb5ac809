// One function for each format of image files, each in a file of its own.
#pragma once

#include "braid/result.h"
#include "images/decode.h"
#include "images/picture.h"

#include <cstdint>
#include <string_view>

namespace braid::images {

struct StoredPicture {
  Picture picture;
  int orientation = 1;  // EXIF's: 1 is upright
};

Result<StoredPicture> read_jpeg(std::string_view file, const DecodeLimits& limits);
Result<StoredPicture> read_png(std::string_view file, const DecodeLimits& limits);
Result<StoredPicture> read_webp(std::string_view file, const DecodeLimits& limits);
Result<StoredPicture> read_gif(std::string_view file, const DecodeLimits& limits);
Result<StoredPicture> read_bmp(std::string_view file, const DecodeLimits& limits);

// "the image is a broken PNG file: …"
Error broken(std::string_view format, std::string_view why);
// Of the size in a header, before memory is taken for it.
Result<void> check_size(std::int64_t height, std::int64_t width, const DecodeLimits& limits);

}  // namespace braid::images
