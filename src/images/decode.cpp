#include "images/decode.h"

#include "images/exif.h"
#include "images/formats.h"

#include <fmt/format.h>
#include <utility>

namespace braid::images {

using namespace std::string_view_literals;

Error broken(std::string_view format, std::string_view why) {
  return invalid_argument(fmt::format("the image is a broken {} file: {}", format, why));
}

Result<void> check_size(std::int64_t height, std::int64_t width, const DecodeLimits& limits) {
  if (height < 1 || width < 1) return invalid_argument(fmt::format("the image has a size of {} × {} pixels", width, height));
  if (height > limits.side || width > limits.side || height * width > limits.pixels)
    return invalid_argument(fmt::format("the image has {} × {} pixels; at most {} million, and {} a side, are read", width, height,
                                        limits.pixels / 1'000'000, limits.side));
  return {};
}

namespace {

Result<StoredPicture> read(std::string_view file, const DecodeLimits& limits) {
  if (file.starts_with("\xFF\xD8\xFF"sv)) return read_jpeg(file, limits);
  if (file.starts_with("\x89PNG\r\n\x1A\n"sv)) return read_png(file, limits);
  if (file.starts_with("RIFF"sv) && file.substr(0, 12).ends_with("WEBP"sv)) return read_webp(file, limits);
  if (file.starts_with("GIF87a"sv) || file.starts_with("GIF89a"sv)) return read_gif(file, limits);
  if (file.starts_with("BM"sv)) return read_bmp(file, limits);
  return invalid_argument(file.empty() ? "the image is empty" : "the image is no JPEG, PNG, WebP, GIF or BMP file");
}

}  // namespace

Result<Picture> decode(std::string_view file, const DecodeLimits& limits) {
  Result<StoredPicture> stored = read(file, limits);
  if (!stored) return stored.error();
  return upright(std::move(stored->picture), stored->orientation);
}

}  // namespace braid::images
