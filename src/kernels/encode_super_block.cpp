// Blocks of 256 values. weight_super_block.cpp has the layouts.
#include "kernels/encode.h"
#include "kernels/encode_block.h"
#include "kernels/weight_block.h"

namespace braid::kernels {
namespace {

// Scales and minimums of `kParts` parts as small integers times one float each, and the codes they give.
template <int kParts>
struct FromMinimum {
  FromMinimum(const float* x, float most_code, float most_scale) {
    constexpr int kValues = 256 / kParts;
    float scales[kParts];
    float minimums[kParts];
    for (int part = 0; part < kParts; ++part) {
      const auto [low, high] = std::minmax_element(x + part * kValues, x + (part + 1) * kValues);
      minimums[part] = std::max(0.0F, -*low);
      scales[part] = std::max(0.0F, *high + minimums[part]) / most_code;
    }
    scale = largest(scales, kParts) / most_scale;
    minimum = largest(minimums, kParts) / most_scale;
    for (int part = 0; part < kParts; ++part) {
      small_scales[part] = code_of(scales[part], scale, 0.0F, most_scale);
      small_minimums[part] = code_of(minimums[part], minimum, 0.0F, most_scale);
      for (int i = part * kValues; i < (part + 1) * kValues; ++i) {
        const float above = x[i] + minimum * static_cast<float>(small_minimums[part]);
        codes[i] = code_of(above, scale * static_cast<float>(small_scales[part]), 0.0F, most_code);
      }
    }
  }

  float scale, minimum;
  unsigned small_scales[kParts], small_minimums[kParts], codes[256];
};

// For each 128 values, 32 bytes with four runs of 32 two-bit codes.
void put_two_bits(const unsigned* codes, BlockWriter& out) {
  for (int i = 0; i < 64; ++i) {
    const unsigned* first = codes + i / 32 * 128 + i % 32;
    out.put_byte((first[0] & 3U) | (first[32] & 3U) << 2 | (first[64] & 3U) << 4 | (first[96] & 3U) << 6);
  }
}

// Bit r of byte i is bit `bit` of value i of run r.
void put_high_bits(const unsigned* codes, int bit, BlockWriter& out) {
  for (int i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (int run = 0; run < 8; ++run) bits |= ((codes[run * 32 + i] >> bit) & 1U) << run;
    out.put_byte(bits);
  }
}

void encode_q2_k(const float* x, BlockWriter out) {
  const FromMinimum<16> block(x, 3.0F, 15.0F);
  for (int part = 0; part < 16; ++part) out.put_byte(block.small_scales[part] | block.small_minimums[part] << 4);
  put_two_bits(block.codes, out);
  out.put_half(block.scale);
  out.put_half(block.minimum);
}

// The value furthest from zero becomes -4, so that a part's scale has either sign.
void encode_q3_k(const float* x, BlockWriter out) {
  float scales[16];
  for (int part = 0; part < 16; ++part) {
    const float* end = x + part * 16 + 16;
    scales[part] = -*std::max_element(x + part * 16, end, [](float a, float b) { return std::fabs(a) < std::fabs(b); }) / 4.0F;
  }
  const float scale = largest(scales, 16) / 31.0F;
  unsigned small_scales[16];
  unsigned codes[256];
  for (int part = 0; part < 16; ++part) {
    small_scales[part] = code_of(scales[part], scale, 32.0F, 63.0F);
    const float part_scale = scale * (static_cast<float>(small_scales[part]) - 32.0F);
    for (int i = part * 16; i < part * 16 + 16; ++i) codes[i] = code_of(x[i], part_scale, 4.0F, 7.0F);
  }
  put_high_bits(codes, 2, out);
  put_two_bits(codes, out);
  for (int i = 0; i < 8; ++i) out.put_byte((small_scales[i] & 15U) | (small_scales[i + 8] & 15U) << 4);
  for (int i = 0; i < 4; ++i) {
    out.put_byte(small_scales[i] >> 4 | small_scales[i + 4] >> 4 << 2 | small_scales[i + 8] >> 4 << 4 | small_scales[i + 12] >> 4 << 6);
  }
  out.put_half(scale);
}

// Q4_K and Q5_K.
void encode_k_minimum(const float* x, float most, BlockWriter out) {
  const FromMinimum<8> block(x, most, 63.0F);
  const unsigned* scales = block.small_scales;
  const unsigned* minimums = block.small_minimums;
  out.put_half(block.scale);
  out.put_half(block.minimum);
  for (int i = 0; i < 4; ++i) out.put_byte(scales[i] | scales[i + 4] >> 4 << 6);
  for (int i = 0; i < 4; ++i) out.put_byte(minimums[i] | minimums[i + 4] >> 4 << 6);
  for (int i = 4; i < 8; ++i) out.put_byte((scales[i] & 15U) | (minimums[i] & 15U) << 4);
  if (most > 15.0F) put_high_bits(block.codes, 4, out);
  for (int i = 0; i < 128; ++i) {
    const int low = i / 32 * 64 + i % 32;
    out.put_byte((block.codes[low] & 15U) | (block.codes[low + 32] & 15U) << 4);
  }
}

void encode_q6_k(const float* x, BlockWriter out) {
  float scales[16];
  for (int part = 0; part < 16; ++part) scales[part] = largest(x + part * 16, 16) / 31.0F;
  const float scale = largest(scales, 16) / 127.0F;
  unsigned small_scales[16];
  unsigned codes[256];
  for (int part = 0; part < 16; ++part) {
    small_scales[part] = code_of(scales[part], scale, 0.0F, 127.0F);
    for (int i = part * 16; i < part * 16 + 16; ++i) codes[i] = code_of(x[i], scale * static_cast<float>(small_scales[part]), 32.0F, 63.0F);
  }
  for (int i = 0; i < 128; ++i) {
    const int low = i / 64 * 128 + i % 64;
    out.put_byte((codes[low] & 15U) | (codes[low + 64] & 15U) << 4);
  }
  for (int i = 0; i < 64; ++i) {
    const unsigned* first = codes + i / 32 * 128 + i % 32;
    out.put_byte(first[0] >> 4 | first[32] >> 4 << 2 | first[64] >> 4 << 4 | first[96] >> 4 << 6);
  }
  for (const unsigned small : small_scales) out.put_byte(small);
  out.put_half(scale);
}

void encode_iq4_xs(const float* x, BlockWriter out) {
  const BlockForm& form = *block_form(WeightType::kIQ4_XS);
  float scales[8];
  for (int run = 0; run < 8; ++run) scales[run] = largest(x + run * 32, 32) / 127.0F;
  const float scale = largest(scales, 8) / 31.0F;
  unsigned small_scales[8];
  unsigned codes[256];
  unsigned high = 0;
  for (int run = 0; run < 8; ++run) {
    small_scales[run] = code_of(scales[run], scale, 32.0F, 63.0F);
    high |= small_scales[run] >> 4 << 2 * run;
    const float run_scale = scale * (static_cast<float>(small_scales[run]) - 32.0F);
    for (int i = run * 32; i < run * 32 + 32; ++i) codes[i] = table_code(form.table, x[i], run_scale, static_cast<float>(form.bias));
  }
  out.put_half(scale);
  out.put(static_cast<std::uint16_t>(high));
  for (int i = 0; i < 4; ++i) out.put_byte((small_scales[2 * i] & 15U) | (small_scales[2 * i + 1] & 15U) << 4);
  for (int run = 0; run < 8; ++run) out.put_halves(codes + run * 32);
}

}  // namespace

void encode_super_block(WeightType type, const float* values, std::byte* stored) noexcept {
  const BlockWriter out(stored);
  switch (type) {
    case WeightType::kQ2_K:
      return encode_q2_k(values, out);
    case WeightType::kQ3_K:
      return encode_q3_k(values, out);
    case WeightType::kQ4_K:
      return encode_k_minimum(values, 15.0F, out);
    case WeightType::kQ5_K:
      return encode_k_minimum(values, 31.0F, out);
    case WeightType::kQ6_K:
      return encode_q6_k(values, out);
    case WeightType::kIQ4_XS:
      return encode_iq4_xs(values, out);
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
    case WeightType::kQ8_0:
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kIQ4_NL:
    case WeightType::kMXFP4:
    case WeightType::kRotated8:
      return;
  }
}

}  // namespace braid::kernels
