// 16-bit float conversions in portable code, with the results of F16C: for what runs rarely (packing, single rows) and for the
// scalar tier. Internal linkage, because wide tiers have their own.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace braid::kernels {

static inline std::uint16_t load_half(const std::byte* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}

static inline float bf16_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

static inline float f16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1F) {  // infinity, or a NaN made quiet
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13) | (mantissa != 0 ? 0x400000U : 0U));
  }
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

// Rounds to nearest, half to even.
static inline std::uint16_t float_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x1FFU);
  } else if (magnitude >= 0x477FF000U) {  // 65520 and more round to infinity
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {  // subnormal in 16 bits: adding 0.5 leaves multiples of 2^-24 in the low bits
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  } else {
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    half = (magnitude - 0x38000000U + 0xFFFU + odd) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

// Rounds to nearest, half to even; a NaN stays one and becomes quiet.
static inline std::uint16_t float_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

static inline bool is_finite_bf16(std::uint16_t bits) { return (bits & 0x7FFFU) <= 0x7F7FU; }

// An infinity or NaN becomes the largest number, with its sign.
static inline std::uint16_t finite_bf16(std::uint16_t bits) {
  return is_finite_bf16(bits) ? bits : static_cast<std::uint16_t>((bits & 0x8000U) | 0x7F7FU);
}

}  // namespace braid::kernels
