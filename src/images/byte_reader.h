// Numbers in the bytes of an image file: reading beyond the end gives zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace braid::images {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes, bool big_endian = false) : bytes_(bytes), big_endian_(big_endian) {}

  std::size_t size() const { return bytes_.size(); }
  bool holds(std::size_t at, std::size_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }

  std::uint32_t byte(std::size_t at) const { return at < bytes_.size() ? static_cast<unsigned char>(bytes_[at]) : 0U; }
  std::uint32_t half(std::size_t at) const { return big_endian_ ? byte(at) << 8U | byte(at + 1) : byte(at) | byte(at + 1) << 8U; }
  std::uint32_t word(std::size_t at) const { return big_endian_ ? half(at) << 16U | half(at + 2) : half(at) | half(at + 2) << 16U; }
  std::int32_t signed_word(std::size_t at) const { return static_cast<std::int32_t>(word(at)); }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

}  // namespace braid::images
