#include "text/tokenizer/charsmap.h"

#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <utility>

namespace braid::text {
namespace {

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::size_t distance_of(std::uint32_t unit) { return static_cast<std::size_t>(unit >> 10U) << ((unit & 0x200U) >> 6U); }

}  // namespace

std::optional<Charsmap> Charsmap::read(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const std::uint32_t size = little_endian(bytes);
  if (size % 4 != 0 || size > bytes.size() - 4) return std::nullopt;
  std::vector<std::uint32_t> units(size / 4);
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = little_endian(bytes.substr(4 + 4 * i, 4));
  std::string texts(bytes.substr(4 + size));
  if (valid_utf8(texts) != texts) return std::nullopt;
  return Charsmap(std::move(units), std::move(texts));
}

// A unit holds the label of the byte that leads to it, whether a key ends there, and how far its children are.
Charsmap::Match Charsmap::look_up(std::string_view text, bool first) const {
  Match best;
  if (units_.empty()) return best;
  std::size_t node = distance_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || (units_[node] & 0x800000ffU) != byte) break;
    const bool ends = ((units_[node] >> 8U) & 1U) != 0;
    node ^= distance_of(units_[node]);
    if (node >= units_.size()) break;
    if (!ends) continue;
    const std::size_t place = units_[node] & 0x7fffffffU;
    if (place > texts_.size()) break;
    const std::size_t end = std::min(texts_.find('\0', place), texts_.size());
    best = {i + 1, std::string_view(texts_).substr(place, end - place)};
    if (first) break;
  }
  return best;
}

}  // namespace braid::text
