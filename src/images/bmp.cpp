#include "images/byte_reader.h"
#include "images/formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace braid::images {
namespace {

enum BmpPacking : std::uint32_t { kPlain = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3, kMasksWithAlpha = 6 };

struct BmpHeader {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool upside_down = true;  // the last row comes first
  std::uint32_t bits = 0;   // of a pixel
  std::uint32_t packing = kPlain;
  std::array<std::uint32_t, 3> masks{};  // of R, G, B in a pixel of 16 or 32 bits
  std::size_t colours = 0;               // where the table is
  std::size_t colour_size = 4;
  std::uint32_t colour_count = 0;
  std::size_t data = 0;
};

Result<BmpHeader> read_header(const ByteReader& bytes) {
  BmpHeader header;
  header.data = bytes.word(10);
  const std::size_t size = bytes.word(14);
  if (size != 12 && (size < 40 || size > 124)) return broken("BMP", "its header is of an unknown kind");
  if (!bytes.holds(14, size)) return broken("BMP", "it ends within its header");
  header.colours = 14 + size;
  if (size == 12) {
    header.width = bytes.half(18);
    header.height = bytes.half(20);
    header.bits = bytes.half(24);
    header.colour_size = 3;
  } else {
    header.width = bytes.signed_word(18);
    header.height = bytes.signed_word(22);
    header.upside_down = header.height >= 0;
    header.height = header.upside_down ? header.height : -header.height;
    header.bits = bytes.half(28);
    header.packing = bytes.word(30);
    header.colour_count = bytes.word(46);
  }
  if (header.bits == 16) header.masks = {0x7C00, 0x03E0, 0x001F};
  if (header.bits == 32) header.masks = {0xFF0000, 0x00FF00, 0x0000FF};
  if (header.packing == kMasks || header.packing == kMasksWithAlpha)
    for (std::size_t c = 0; c < 3; ++c) header.masks[c] = bytes.word(54 + c * 4);
  if (header.bits <= 8 && (header.colour_count == 0 || header.colour_count > 256)) header.colour_count = 1U << header.bits;
  const bool runs = (header.packing == kRuns8 && header.bits == 8) || (header.packing == kRuns4 && header.bits == 4);
  const bool masked = (header.packing == kMasks || header.packing == kMasksWithAlpha) && (header.bits == 16 || header.bits == 32);
  const bool plain = header.packing == kPlain && (header.bits == 1 || header.bits == 4 || header.bits == 8 || header.bits == 16 ||
                                                  header.bits == 24 || header.bits == 32);
  if (!runs && !masked && !plain) return broken("BMP", "its pixels are of an unknown kind");
  return header;
}

std::uint8_t masked_value(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const auto shift = static_cast<unsigned>(std::countr_zero(mask));
  const std::uint64_t most = mask >> shift;
  return static_cast<std::uint8_t>(std::uint64_t{(pixel & mask) >> shift} * 255 / most);
}

// Puts the colour of a table.
void put_colour(const ByteReader& bytes, const BmpHeader& header, std::uint32_t index, std::uint8_t* to) {
  const std::size_t at = header.colours + index * header.colour_size;
  for (std::size_t c = 0; c < 3; ++c)
    to[c] = index < header.colour_count ? static_cast<std::uint8_t>(bytes.byte(at + 2 - c)) : std::uint8_t{0};
}

void read_row(const ByteReader& bytes, const BmpHeader& header, std::size_t row, std::uint8_t* to) {
  for (std::size_t x = 0; x < static_cast<std::size_t>(header.width); ++x, to += 3) {
    if (header.bits <= 8) {
      const std::size_t place = x * header.bits;
      const auto shift = static_cast<unsigned>(8 - header.bits - place % 8);
      put_colour(bytes, header, (bytes.byte(row + place / 8) >> shift) & ((1U << header.bits) - 1U), to);
    } else if (header.bits == 24) {
      for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(bytes.byte(row + x * 3 + 2 - c));
    } else {
      const std::uint32_t pixel = header.bits == 16 ? bytes.half(row + x * 2) : bytes.word(row + x * 4);
      for (std::size_t c = 0; c < 3; ++c) to[c] = masked_value(pixel, header.masks[c]);
    }
  }
}

// Runs of equal pixels, and others as they are. What no run covers has the first colour.
std::vector<std::uint8_t> unpack_runs(const ByteReader& bytes, const BmpHeader& header) {
  const auto width = static_cast<std::size_t>(header.width);
  const auto height = static_cast<std::size_t>(header.height);
  std::vector<std::uint8_t> indices(width * height);
  std::size_t x = 0;
  std::size_t y = 0;
  const bool half = header.packing == kRuns4;
  const auto put = [&](std::uint32_t byte, std::size_t i) {
    const std::uint32_t index = !half ? byte : i % 2 == 0 ? byte >> 4U : byte & 15U;
    if (x < width && y < height) indices[y * width + x] = static_cast<std::uint8_t>(index);
    ++x;
  };
  for (std::size_t at = header.data; bytes.holds(at, 2) && y < height;) {
    const std::uint32_t count = bytes.byte(at);
    const std::uint32_t what = bytes.byte(at + 1);
    at += 2;
    if (count > 0) {
      for (std::size_t i = 0; i < count; ++i) put(what, i);
    } else if (what == 0) {
      x = 0;
      ++y;
    } else if (what == 1) {
      break;
    } else if (what == 2) {
      x += bytes.byte(at);
      y += bytes.byte(at + 1);
      at += 2;
    } else {
      for (std::size_t i = 0; i < what; ++i) put(bytes.byte(at + (half ? i / 2 : i)), i);
      const std::size_t size = half ? (what + 1) / 2 : what;
      at += size + size % 2;
    }
  }
  return indices;
}

}  // namespace

Result<StoredPicture> read_bmp(std::string_view file, const DecodeLimits& limits) {
  const ByteReader bytes(file);
  const Result<BmpHeader> read = read_header(bytes);
  if (!read) return read.error();
  const BmpHeader& header = *read;
  const Result<void> fits = check_size(header.height, header.width, limits);
  if (!fits) return fits.error();
  const bool runs = header.packing == kRuns8 || header.packing == kRuns4;
  const auto width = static_cast<std::size_t>(header.width);
  const auto height = static_cast<std::size_t>(header.height);
  const std::size_t stride = (width * header.bits + 31) / 32 * 4;
  // The last row may lack its padding.
  if (!runs && !bytes.holds(header.data, stride * (height - 1) + (width * header.bits + 7) / 8)) return broken("BMP", "it ends too early");
  StoredPicture out{Picture::empty(static_cast<std::int32_t>(header.height), static_cast<std::int32_t>(header.width)), 1};
  const std::vector<std::uint8_t> indices = runs ? unpack_runs(bytes, header) : std::vector<std::uint8_t>();
  for (std::size_t stored = 0; stored < height; ++stored) {
    std::uint8_t* to = out.picture.row(static_cast<std::int32_t>(header.upside_down ? height - 1 - stored : stored));
    if (!runs) {
      read_row(bytes, header, header.data + stored * stride, to);
    } else {
      for (std::size_t x = 0; x < width; ++x) put_colour(bytes, header, indices[stored * width + x], to + x * 3);
    }
  }
  return out;
}

}  // namespace braid::images
