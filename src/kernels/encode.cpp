#include "kernels/encode.h"

#include "kernels/encode_block.h"
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"
#include "kernels/rotation.h"
#include "kernels/weight_block.h"

#include <bit>

namespace braid::kernels {
namespace {

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Bit for bit as ggml's reference and gguf-py: halves are rounded away from zero.
void encode_q8_0(const float* x, BlockWriter out) {
  const float scale = largest(x, 32) / 127.0F;
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  out.put_half(scale);
  for (int i = 0; i < 32; ++i) out.put(static_cast<std::int8_t>(std::clamp(std::round(x[i] * inverse), -127.0F, 127.0F)));
}

// As ggml rounds where a scale is not searched: half a step is added and the fraction cut off.
unsigned cut(float value, float most) { return value > 0.0F ? static_cast<unsigned>(std::min(value, most)) : 0U; }

// Q4_0 and Q5_0: the value furthest from zero becomes the lowest code, so that the scale has its opposite sign. Bits as gguf-py's.
void encode_symmetric(const float* x, float half, BlockWriter out) {
  const float furthest = *std::max_element(x, x + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float scale = furthest / -half;
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = cut(x[i] * inverse + (half + 0.5F), 2 * half - 1);
  out.put_half(scale);
  put_codes(codes, half > 8.0F, out);
}

// Q4_1 and Q5_1. Bits as gguf-py's.
void encode_from_minimum(const float* x, float most, BlockWriter out) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float scale = (*high - *low) / most;
  const float inverse = scale != 0.0F ? 1.0F / scale : 0.0F;
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = cut((x[i] - *low) * inverse + 0.5F, most);
  out.put_half(scale);
  out.put_half(*low);
  put_codes(codes, most > 15.0F, out);
}

void encode_iq4_nl(const float* x, BlockWriter out) {
  const BlockForm& form = *block_form(WeightType::kIQ4_NL);
  const float scale = largest(x, 32) / 127.0F;
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = table_code(form.table, x[i], scale, static_cast<float>(form.bias));
  out.put_half(scale);
  out.put_halves(codes);
}

// The scale is the power of two that brings the largest value to [4, 8) (OCP Microscaling Formats 1.0, 6.3).
void encode_mxfp4(const float* x, BlockWriter out) {
  const BlockForm& form = *block_form(WeightType::kMXFP4);
  const float amax = largest(x, 32);
  const int exponent = amax > 0.0F ? std::clamp(std::ilogb(amax) - 2, -126, 127) : -126;
  const float half_scale = std::ldexp(1.0F, exponent - 1);
  unsigned codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = table_code(form.table, x[i], half_scale, static_cast<float>(form.bias));
  out.put_byte(amax > 0.0F ? static_cast<unsigned>(exponent + 127) : 0U);
  out.put_halves(codes);
}

void encode_block(WeightType type, const float* x, std::byte* stored) {
  BlockWriter out(stored);
  switch (type) {
    case WeightType::kF32:
      return out.put(*x);
    case WeightType::kF16:
      return out.put_half(*x);
    case WeightType::kBF16:
      return out.put(to_bf16(*x));
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
    case WeightType::kMXFP4:
      return encode_mxfp4(x, out);
    case WeightType::kQ2_K:
    case WeightType::kQ3_K:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
    case WeightType::kQ6_K:
    case WeightType::kIQ4_XS:
      return encode_super_block(type, x, stored);
    case WeightType::kRotated8:
      return;  // by groups: encode_rotated
  }
}

// One group: all of its blocks get the scale of its largest rotated value, as f16 has it.
void encode_rotated(const float* values, std::int64_t count, BlockWriter out) {
  float rotated[kMostWideGroupBlocks * kBlockValues];
  for (std::int64_t i = 0; i < count; i += kRotatedValues) rotate(values + i, rotated + i);
  const float scale = f16_to_float(float_to_f16(largest(rotated, static_cast<int>(count)) / 127.0F));
  for (std::int64_t i = 0; i < count; ++i) {
    if (i % kRotatedValues == 0) out.put_half(scale);
    out.put(static_cast<std::int8_t>(static_cast<int>(code_of(rotated[i], scale, 127.0F, 254.0F)) - 127));
  }
}

}  // namespace

void encode_codes(WeightType type, const unsigned (&codes)[32], float scale, float minimum, std::byte* stored) noexcept {
  BlockWriter out(stored);
  out.put_half(scale);
  if (type == WeightType::kQ8_0) {
    for (const unsigned code : codes) out.put(static_cast<std::int8_t>(static_cast<int>(code) - 128));
    return;
  }
  if (type == WeightType::kQ4_1 || type == WeightType::kQ5_1) out.put_half(minimum);
  put_codes(codes, type == WeightType::kQ5_0 || type == WeightType::kQ5_1, out);
}

void encode_row(WeightType type, const float* values, std::int64_t columns, std::byte* stored) noexcept {
  const WeightFormat& format = *weight_format(type);
  if (type == WeightType::kRotated8) {
    const std::int64_t blocks = columns / kBlockValues;
    for (std::int64_t begin = 0, end = 0; begin < blocks; begin = end) {
      end = group_end(kCodes8Grouped, begin, blocks);
      const std::int64_t first = begin * kBlockValues;
      encode_rotated(values + first, (end - begin) * kBlockValues, BlockWriter(stored + first / kRotatedValues * format.block_bytes));
    }
    return;
  }
  for (std::int64_t i = 0; i < columns; i += format.block_values, stored += format.block_bytes) encode_block(type, values + i, stored);
}

}  // namespace braid::kernels
