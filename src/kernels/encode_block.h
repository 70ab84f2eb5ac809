// What the encoders of all block types share.
#pragma once

#include "kernels/half.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace braid::kernels {

// Writes the fields of a stored block one after the other.
class BlockWriter {
 public:
  explicit BlockWriter(std::byte* to) : to_(to) {}

  template <class T>
  void put(T value) {
    std::memcpy(to_, &value, sizeof(value));
    to_ += sizeof(value);
  }
  void put_half(float value) { put(float_to_f16(value)); }
  void put_byte(unsigned value) { put(static_cast<std::uint8_t>(value)); }
  // Byte i holds the low halves of codes i and i + 16.
  void put_halves(const unsigned* codes) {
    for (int i = 0; i < 16; ++i) put_byte((codes[i] & 15U) | (codes[i + 16] & 15U) << 4);
  }

 private:
  std::byte* to_;
};

inline float largest(const float* values, int count) {
  float amax = 0.0F;
  for (int i = 0; i < count; ++i) amax = std::max(amax, std::fabs(values[i]));
  return amax;
}

// value / scale + bias, rounded and kept within [0, most].
inline unsigned code_of(float value, float scale, float bias, float most) {
  const float code = std::nearbyint((scale != 0.0F ? value / scale : 0.0F) + bias);
  return code > 0.0F ? static_cast<unsigned>(std::min(code, most)) : 0U;
}

// The entry of a table of 16 that is closest to value / scale + bias.
inline unsigned table_code(const std::uint8_t* table, float value, float scale, float bias) {
  const float wanted = (scale != 0.0F ? value / scale : 0.0F) + bias;
  const auto closer = [&](std::uint8_t a, std::uint8_t b) {
    return std::fabs(wanted - static_cast<float>(a)) < std::fabs(wanted - static_cast<float>(b));
  };
  return static_cast<unsigned>(std::min_element(table, table + 16, closer) - table);
}

// The bits above four of all codes, then the rest.
inline void put_codes(const unsigned (&codes)[32], bool fifth_bits, BlockWriter& out) {
  std::uint32_t high = 0;
  for (int i = 0; i < 32; ++i) high |= (codes[i] >> 4) << i;
  if (fifth_bits) out.put(high);
  out.put_halves(codes);
}

}  // namespace braid::kernels
