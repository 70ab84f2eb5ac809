#include "encode.h"

#include <kernels/half.h>
#include <kernels/weight_block.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <stdexcept>

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

float largest(const float* values, int count) {
  float amax = 0.0F;
  for (int i = 0; i < count; ++i) amax = std::max(amax, std::fabs(values[i]));
  return amax;
}

// value / scale + bias, rounded and kept within [0, most].
unsigned code_of(float value, float scale, float bias, float most) {
  return static_cast<unsigned>(std::clamp(std::nearbyint((scale > 0.0F ? value / scale : 0.0F) + bias), 0.0F, most));
}

// The low half of byte i is value i's, the high half that of value i + 16; the bits above come first, 32 of them.
void append_codes(const unsigned (&codes)[32], bool fifth_bits, std::vector<std::byte>& out) {
  std::uint32_t high = 0;
  for (int i = 0; i < 32; ++i) high |= (codes[i] >> 4) << i;
  if (fifth_bits) append(out, high);
  for (int i = 0; i < 16; ++i) append(out, static_cast<std::uint8_t>((codes[i] & 15U) | (codes[i + 16] & 15U) << 4));
}

void encode_q8_0(const float* x, std::vector<std::byte>& out) {
  const float scale = largest(x, 32) / 127.0F;
  append(out, kernels::float_to_f16(scale));
  for (int i = 0; i < 32; ++i) append(out, static_cast<std::int8_t>(std::nearbyint(scale > 0.0F ? x[i] / scale : 0.0F)));
}

// Q4_0 and Q5_0: half of the codes stand for negative values.
void encode_symmetric(const float* x, float half, std::vector<std::byte>& out) {
  const float scale = largest(x, 32) / (half - 1.0F);
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = code_of(x[i], scale, half, 2 * half - 1);
  append(out, kernels::float_to_f16(scale));
  append_codes(codes, half > 8.0F, out);
}

// Q4_1 and Q5_1.
void encode_from_minimum(const float* x, float most, std::vector<std::byte>& out) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float scale = (*high - *low) / most;
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = code_of(x[i] - *low, scale, 0.0F, most);
  append(out, kernels::float_to_f16(scale));
  append(out, kernels::float_to_f16(*low));
  append_codes(codes, most > 15.0F, out);
}

void encode_iq4_nl(const float* x, std::vector<std::byte>& out) {
  const kernels::BlockForm& form = *kernels::block_form(WeightType::kIQ4_NL);
  const float scale = largest(x, 32) / 127.0F;
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) {
    const float wanted = (scale > 0.0F ? x[i] / scale : 0.0F) + static_cast<float>(form.bias);
    const auto further = [&](int a, int b) { return std::fabs(wanted - static_cast<float>(a)) < std::fabs(wanted - static_cast<float>(b)); };
    codes[i] = static_cast<unsigned>(std::min_element(form.table, form.table + 16, further) - form.table);
  }
  append(out, kernels::float_to_f16(scale));
  append_codes(codes, false, out);
}

// Q4_K and Q5_K: scales and minimums of 32 values in 6 bits, of 256 values in f16.
void encode_k_minimum(const float* x, float most, std::vector<std::byte>& out) {
  float scales[8];
  float minimums[8];
  for (int run = 0; run < 8; ++run) {
    const auto [low, high] = std::minmax_element(x + run * 32, x + run * 32 + 32);
    minimums[run] = std::max(0.0F, -*low);
    scales[run] = (*high + minimums[run]) / most;
  }
  const float scale = largest(scales, 8) / 63.0F;
  const float minimum = largest(minimums, 8) / 63.0F;
  unsigned small_scales[8];
  unsigned small_minimums[8];
  unsigned codes[256];
  for (int run = 0; run < 8; ++run) {
    small_scales[run] = code_of(scales[run], scale, 0.0F, 63.0F);
    small_minimums[run] = code_of(minimums[run], minimum, 0.0F, 63.0F);
    for (int i = run * 32; i < run * 32 + 32; ++i) {
      const float above = x[i] + minimum * static_cast<float>(small_minimums[run]);
      codes[i] = code_of(above, scale * static_cast<float>(small_scales[run]), 0.0F, most);
    }
  }
  append(out, kernels::float_to_f16(scale));
  append(out, kernels::float_to_f16(minimum));
  for (int i = 0; i < 4; ++i) append(out, static_cast<std::uint8_t>(small_scales[i] | (small_scales[i + 4] >> 4) << 6));
  for (int i = 0; i < 4; ++i) append(out, static_cast<std::uint8_t>(small_minimums[i] | (small_minimums[i + 4] >> 4) << 6));
  for (int i = 4; i < 8; ++i) append(out, static_cast<std::uint8_t>((small_scales[i] & 15U) | (small_minimums[i] & 15U) << 4));
  for (int i = 0; most > 15.0F && i < 32; ++i) {
    unsigned bits = 0;
    for (int run = 0; run < 8; ++run) bits |= (codes[run * 32 + i] >> 4) << run;
    append(out, static_cast<std::uint8_t>(bits));
  }
  for (int i = 0; i < 128; ++i) {
    const int low = i / 32 * 64 + i % 32;
    append(out, static_cast<std::uint8_t>((codes[low] & 15U) | (codes[low + 32] & 15U) << 4));
  }
}

void encode_q6_k(const float* x, std::vector<std::byte>& out) {
  float scales[16];
  for (int part = 0; part < 16; ++part) scales[part] = largest(x + part * 16, 16) / 31.0F;
  const float scale = largest(scales, 16) / 127.0F;
  unsigned small_scales[16];
  unsigned codes[256];
  for (int part = 0; part < 16; ++part) {
    small_scales[part] = code_of(scales[part], scale, 0.0F, 127.0F);
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      codes[i] = code_of(x[i], scale * static_cast<float>(small_scales[part]), 32.0F, 63.0F);
    }
  }
  for (int i = 0; i < 128; ++i) {
    const int low = i / 64 * 128 + i % 64;
    append(out, static_cast<std::uint8_t>((codes[low] & 15U) | (codes[low + 64] & 15U) << 4));
  }
  for (int i = 0; i < 64; ++i) {
    const unsigned* first = codes + i / 32 * 128 + i % 32;
    append(out, static_cast<std::uint8_t>(first[0] >> 4 | first[32] >> 4 << 2 | first[64] >> 4 << 4 | first[96] >> 4 << 6));
  }
  for (const unsigned small : small_scales) append(out, static_cast<std::int8_t>(small));
  append(out, kernels::float_to_f16(scale));
}

void encode_block(WeightType type, const float* x, std::vector<std::byte>& out) {
  switch (type) {
    case WeightType::kF32:
      return append(out, *x);
    case WeightType::kF16:
      return append(out, kernels::float_to_f16(*x));
    case WeightType::kBF16:
      return append(out, to_bf16(*x));
    case WeightType::kQ8_0:
      return encode_q8_0(x, out);
    case WeightType::kQ4_0:
      return encode_symmetric(x, 8.0F, out);
    case WeightType::kQ5_0:
      return encode_symmetric(x, 16.0F, out);
    case WeightType::kQ4_1:
      return encode_from_minimum(x, 15.0F, out);
    case WeightType::kQ5_1:
      return encode_from_minimum(x, 31.0F, out);
    case WeightType::kIQ4_NL:
      return encode_iq4_nl(x, out);
    case WeightType::kQ4_K:
      return encode_k_minimum(x, 15.0F, out);
    case WeightType::kQ5_K:
      return encode_k_minimum(x, 31.0F, out);
    case WeightType::kQ6_K:
      return encode_q6_k(x, out);
    default:
      throw std::logic_error("no encoder for this weight type");
  }
}

}  // namespace

void encode(WeightType type, const float* values, std::size_t count, std::vector<std::byte>& out) {
  const auto step = static_cast<std::size_t>(kernels::weight_format(type)->block_values);
  for (std::size_t i = 0; i < count; i += step) encode_block(type, values + i, out);
}

}  // namespace braid::perf
