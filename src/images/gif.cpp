#include "images/byte_reader.h"
#include "images/formats.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace braid::images {
namespace {

// Codes of a stream of sub-blocks, each with its length in front, the least significant bit first.
class CodeReader {
 public:
  CodeReader(const ByteReader& bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  // Nothing: the stream has ended.
  std::optional<std::uint32_t> next(unsigned size) {
    while (held_ < size) {
      if (left_ == 0) {
        left_ = bytes_.byte(at_++);
        if (left_ == 0) return std::nullopt;
      }
      if (at_ >= bytes_.size()) return std::nullopt;
      bits_ |= bytes_.byte(at_++) << held_;
      held_ += 8;
      --left_;
    }
    const std::uint32_t code = bits_ & ((1U << size) - 1U);
    bits_ >>= size;
    held_ -= size;
    return code;
  }

 private:
  const ByteReader& bytes_;
  std::size_t at_;
  std::uint32_t left_ = 0;  // bytes of the sub-block
  std::uint32_t bits_ = 0;
  unsigned held_ = 0;
};

// LZW: a code stands for the string of an earlier code and one more index. `indices` has as many values as are wanted; false: the stream has
// fewer, or is none.
bool unpack(CodeReader& codes, unsigned least_size, std::vector<std::uint8_t>& indices) {
  constexpr std::uint32_t kMostCodes = 4096;
  const std::uint32_t clear = 1U << least_size;
  std::array<std::uint16_t, kMostCodes> before{};
  std::array<std::uint8_t, kMostCodes> last{};
  std::array<std::uint16_t, kMostCodes> length{};
  for (std::uint32_t i = 0; i < clear; ++i) {
    last[i] = static_cast<std::uint8_t>(i);
    length[i] = 1;
  }
  std::uint32_t known = clear + 2;
  unsigned size = least_size + 1;
  std::uint32_t previous = kMostCodes;  // none yet
  std::size_t filled = 0;
  while (filled < indices.size()) {
    const std::optional<std::uint32_t> code = codes.next(size);
    if (!code || *code == clear + 1) return false;
    if (*code == clear) {
      known = clear + 2;
      size = least_size + 1;
      previous = kMostCodes;
      continue;
    }
    const bool has_previous = previous != kMostCodes;
    if (*code > known || (*code >= clear && !has_previous)) return false;
    const bool is_new = *code == known;  // the previous string and its own first index
    if (is_new && known >= kMostCodes) return false;
    const std::uint32_t string = is_new ? previous : *code;
    const std::size_t count = length[string];
    std::uint32_t at = string;
    for (std::size_t i = count; i-- > 0; at = before[at])
      if (filled + i < indices.size()) indices[filled + i] = last[at];
    const std::uint8_t first = indices[filled];
    filled += count;
    if (is_new && filled < indices.size()) indices[filled] = first;
    filled += is_new ? 1 : 0;
    if (has_previous && known < kMostCodes) {
      before[known] = static_cast<std::uint16_t>(previous);
      last[known] = first;
      length[known] = static_cast<std::uint16_t>(length[previous] + 1);
      ++known;
      if (known == 1U << size && size < 12) ++size;
    }
    previous = *code;
  }
  return true;
}

struct Frame {
  std::size_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  std::vector<std::uint8_t> indices;
};

// Rows come in four passes.
std::size_t interlaced_row(std::size_t stored, std::size_t height) {
  constexpr std::array<std::array<std::size_t, 2>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [first, step] : kPasses) {
    const std::size_t rows = height > first ? (height - first + step - 1) / step : 0;
    if (stored < rows) return first + stored * step;
    stored -= rows;
  }
  return height;
}

struct Colours {
  std::size_t at = 0;  // of the table in the file
  std::uint32_t count = 0;

  void put(const ByteReader& bytes, std::uint32_t index, std::uint8_t* to) const {
    for (std::size_t c = 0; c < 3; ++c)
      to[c] = index < count ? static_cast<std::uint8_t>(bytes.byte(at + std::size_t{index} * 3 + c)) : std::uint8_t{0};
  }
};

std::size_t after_blocks(const ByteReader& bytes, std::size_t at) {
  while (bytes.byte(at) != 0) at += 1 + bytes.byte(at);
  return at + 1;
}

}  // namespace

Result<StoredPicture> read_gif(std::string_view file, const DecodeLimits& limits) {
  const ByteReader bytes(file);
  const auto width = static_cast<std::int32_t>(bytes.half(6));
  const auto height = static_cast<std::int32_t>(bytes.half(8));
  const Result<void> fits = check_size(height, width, limits);
  if (!fits) return fits.error();
  const std::uint32_t flags = bytes.byte(10);
  Colours colours;
  if ((flags & 0x80U) != 0) colours = {13, 2U << (flags & 7U)};
  std::size_t at = 13 + std::size_t{colours.count} * 3;
  std::optional<std::uint32_t> transparent;
  while (bytes.byte(at) == 0x21) {  // an extension
    if (bytes.byte(at + 1) == 0xF9 && (bytes.byte(at + 3) & 1U) != 0) transparent = bytes.byte(at + 6);
    at = after_blocks(bytes, at + 2);
  }
  if (!bytes.holds(at, 11) || bytes.byte(at) != 0x2C) return broken("GIF", "it has no frame");
  Frame frame{bytes.half(at + 1), bytes.half(at + 3), bytes.half(at + 5), bytes.half(at + 7), (bytes.byte(at + 9) & 0x40U) != 0, {}};
  const Result<void> frame_fits = check_size(static_cast<std::int64_t>(frame.height), static_cast<std::int64_t>(frame.width), limits);
  if (!frame_fits) return frame_fits.error();
  const std::uint32_t own = bytes.byte(at + 9);
  at += 10;
  if ((own & 0x80U) != 0) {
    colours = {at, 2U << (own & 7U)};
    at += std::size_t{colours.count} * 3;
  }
  const unsigned least_size = bytes.byte(at);
  if (least_size < 1 || least_size > 8) return broken("GIF", "its codes have an impossible size");
  frame.indices.resize(frame.width * frame.height);
  CodeReader codes(bytes, at + 1);
  if (!unpack(codes, least_size, frame.indices)) return broken("GIF", "its data are damaged or cut off");
  StoredPicture out{Picture::empty(height, width), 1};
  const std::uint32_t background = transparent.value_or(bytes.byte(11));
  for (std::size_t i = 0; i < out.picture.values.size(); i += 3) colours.put(bytes, background, out.picture.values.data() + i);
  for (std::size_t row = 0; row < frame.height; ++row) {
    const std::size_t y = frame.top + (frame.interlaced ? interlaced_row(row, frame.height) : row);
    if (y >= static_cast<std::size_t>(height)) continue;
    for (std::size_t x = 0; x < frame.width && frame.left + x < static_cast<std::size_t>(width); ++x)
      colours.put(bytes, frame.indices[row * frame.width + x], out.picture.row(static_cast<std::int32_t>(y)) + (frame.left + x) * 3);
  }
  return out;
}

}  // namespace braid::images
