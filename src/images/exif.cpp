#include "images/exif.h"

#include "images/byte_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace braid::images {

using namespace std::string_view_literals;

int orientation_in(std::string_view exif) {
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  if (exif.starts_with("Exif\0\0"sv)) exif.remove_prefix(6);
  const bool big = exif.starts_with("MM\0*"sv);
  if (!big && !exif.starts_with("II*\0"sv)) return 1;
  const ByteReader tiff(exif, big);
  const std::size_t directory = tiff.word(4);
  const std::uint32_t entries = tiff.half(directory);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{i} * 12;
    if (!tiff.holds(entry, 12)) return 1;
    if (tiff.half(entry) != kOrientation || tiff.half(entry + 2) != kShort) continue;
    const std::uint32_t value = tiff.half(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Picture upright(Picture picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const bool turns = orientation >= 5;  // the rows become columns
  // Where the pixels of the result are found in the stored picture: its axes, once they are exchanged, may run backwards.
  const bool down = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool left = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  Picture out = turns ? Picture::empty(picture.width, picture.height) : Picture::empty(picture.height, picture.width);
  for (std::int32_t y = 0; y < out.height; ++y) {
    std::uint8_t* to = out.row(y);
    for (std::int32_t x = 0; x < out.width; ++x, to += 3) {
      const std::int32_t v = down ? out.height - 1 - y : y;
      const std::int32_t u = left ? out.width - 1 - x : x;
      const std::uint8_t* from = turns ? picture.row(u) + std::ptrdiff_t{v} * 3 : picture.row(v) + std::ptrdiff_t{u} * 3;
      std::copy_n(from, 3, to);
    }
  }
  return out;
}

}  // namespace braid::images
