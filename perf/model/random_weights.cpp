#include "random_weights.h"

#include <kernels/half.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

namespace braid::perf {
namespace {

using kernels::WeightType;

template <class T>
void append(std::vector<std::byte>& out, T value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), raw.begin(), raw.end());
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float largest(const float* values, std::size_t count) {
  float amax = 0.0F;
  for (std::size_t i = 0; i < count; ++i) amax = std::max(amax, std::fabs(values[i]));
  return amax;
}

void encode_q8_0(const float* x, std::vector<std::byte>& out) {
  const float scale = largest(x, 32) / 127.0F;
  append(out, kernels::float_to_f16(scale));
  for (int i = 0; i < 32; ++i) append(out, static_cast<std::int8_t>(std::nearbyint(scale > 0.0F ? x[i] / scale : 0.0F)));
}

// Code 8 stands for 0; the low half of byte i is value i, the high half value i + 16.
void encode_q4_0(const float* x, std::vector<std::byte>& out) {
  const float scale = largest(x, 32) / 7.0F;
  append(out, kernels::float_to_f16(scale));
  const auto code = [&](float value) {
    return static_cast<unsigned>(std::clamp(std::nearbyint(scale > 0.0F ? value / scale : 0.0F) + 8.0F, 0.0F, 15.0F));
  };
  for (int i = 0; i < 16; ++i) append(out, static_cast<std::uint8_t>(code(x[i]) | code(x[i + 16]) << 4));
}

}  // namespace

float RandomValues::next(float deviation) {
  // SplitMix64 (Steele, Lea, Flood 2014).
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  std::int32_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int16_t>(z >> shift);
  return static_cast<float>(sum) * (deviation / 37837.0F);  // four uniforms of 16 bits: sqrt(4 / 12) * 65536
}

void encode(WeightType type, const float* values, std::size_t count, std::vector<std::byte>& out) {
  switch (type) {
    case WeightType::kF32:
      for (std::size_t i = 0; i < count; ++i) append(out, values[i]);
      break;
    case WeightType::kF16:
      for (std::size_t i = 0; i < count; ++i) append(out, kernels::float_to_f16(values[i]));
      break;
    case WeightType::kBF16:
      for (std::size_t i = 0; i < count; ++i) append(out, to_bf16(values[i]));
      break;
    case WeightType::kQ8_0:
      for (std::size_t i = 0; i < count; i += 32) encode_q8_0(values + i, out);
      break;
    case WeightType::kQ4_0:
      for (std::size_t i = 0; i < count; i += 32) encode_q4_0(values + i, out);
      break;
  }
}

}  // namespace braid::perf
