// Blocks of 256 values: f16 scales of the whole block, small integer scales of 16 or 32 values.
#include "kernels/half.h"
#include "kernels/weight_block.h"

#include <cstring>

namespace braid::kernels {
namespace {

// Minimums are stored to be subtracted.
std::uint16_t load_negated_half(const std::byte* from) { return load_half(from) ^ 0x8000; }

unsigned byte_at(const std::byte* from, int i) { return std::to_integer<unsigned>(from[i]); }

// Takes `bits` bits of each byte, from bit `shift` on, as bits `up` and above of 32 codes.
void add_bits(const std::byte* stored, int shift, unsigned mask, int up, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | ((byte_at(stored, i) >> shift) & mask) << up);
}

// Q4_K and Q5_K: eight 6-bit scales and eight minimums in 12 bytes. The first four of each fill the low six bits of bytes 0 to 3
// and 4 to 7; of the last four, bytes 8 to 11 hold the low halves, and the upper two bits of bytes 0 to 7 the rest.
void split_six_bit_scales(const std::byte* stored, WeightBlock& block) {
  for (int i = 0; i < 4; ++i) {
    const unsigned scale = byte_at(stored, i);
    const unsigned minimum = byte_at(stored, 4 + i);
    const unsigned low = byte_at(stored, 8 + i);
    block.scales[i] = static_cast<std::int8_t>(scale & 63U);
    block.minimums[i] = static_cast<std::int8_t>(minimum & 63U);
    block.scales[4 + i] = static_cast<std::int8_t>((low & 15U) | (scale >> 6) << 4);
    block.minimums[4 + i] = static_cast<std::int8_t>(low >> 4 | (minimum >> 6) << 4);
  }
}

// Four runs of 32 bytes: low halves are 32 values, high halves the next 32.
void split_runs(const std::byte* stored, std::uint8_t* codes) {
  for (int run = 0; run < 8; ++run) add_bits(stored + run / 2 * 32, run % 2 * 4, 15, 0, codes + run * 32);
}

// scale, minimum, 12 bytes of scales, codes
void split_q4_k(const std::byte* stored, WeightBlock& block) {
  block.scale = load_half(stored);
  block.minimum = load_negated_half(stored + 2);
  split_six_bit_scales(stored + 4, block);
  split_runs(stored + 16, block.codes);
}

// As Q4_K, with 32 bytes between scales and codes: bit r of byte i is the fifth bit of value i of run r.
void split_q5_k(const std::byte* stored, WeightBlock& block) {
  block.scale = load_half(stored);
  block.minimum = load_negated_half(stored + 2);
  split_six_bit_scales(stored + 4, block);
  split_runs(stored + 48, block.codes);
  for (int run = 0; run < 8; ++run) add_bits(stored + 16, run, 1, 4, block.codes + run * 32);
}

// 128 bytes of low halves, 64 of upper two bits, 16 signed scales, scale. For each 128 values, low halves are two runs of 64: of
// all low halves, then of all high ones; upper bits are 32 bytes with four runs of 32.
void split_q6_k(const std::byte* stored, WeightBlock& block) {
  for (int run = 0; run < 8; ++run) {
    std::uint8_t* codes = block.codes + run * 32;
    add_bits(stored + run / 4 * 64 + run % 2 * 32, run % 4 / 2 * 4, 15, 0, codes);
    add_bits(stored + 128 + run / 4 * 32, run % 4 * 2, 3, 4, codes);
  }
  std::memcpy(block.scales, stored + 192, 16);
  block.scale = load_half(stored + 208);
}

// For each 128 values, 32 bytes with four runs of 32 two-bit codes.
void split_two_bits(const std::byte* stored, std::uint8_t* codes) {
  for (int run = 0; run < 8; ++run) add_bits(stored + run / 4 * 32, run % 4 * 2, 3, 0, codes + run * 32);
}

// 16 bytes with a scale below a minimum, codes, scale, minimum.
void split_q2_k(const std::byte* stored, WeightBlock& block) {
  for (int i = 0; i < 16; ++i) {
    block.scales[i] = static_cast<std::int8_t>(byte_at(stored, i) & 15U);
    block.minimums[i] = static_cast<std::int8_t>(byte_at(stored, i) >> 4);
  }
  split_two_bits(stored + 16, block.codes);
  block.scale = load_half(stored + 80);
  block.minimum = load_negated_half(stored + 82);
}

// 32 bytes of third bits, as Q5_K's fifth ones, codes, 12 bytes of scales, scale. Scale i has its low half in byte i % 8, its upper
// two bits in byte 8 + i % 4, and 32 added.
void split_q3_k(const std::byte* stored, WeightBlock& block) {
  split_two_bits(stored + 32, block.codes);
  for (int run = 0; run < 8; ++run) add_bits(stored, run, 1, 2, block.codes + run * 32);
  const std::byte* scales = stored + 96;
  for (int i = 0; i < 16; ++i) {
    const unsigned low = (byte_at(scales, i % 8) >> i / 8 * 4) & 15U;
    const unsigned high = (byte_at(scales, 8 + i % 4) >> i / 4 * 2) & 3U;
    block.scales[i] = static_cast<std::int8_t>(static_cast<int>(low | high << 4) - 32);
  }
  block.scale = load_half(stored + 108);
}

// scale, 16 bits with the upper two bits of eight scales, their low halves, then blocks of 16 bytes as Q4_0's.
void split_iq4_xs(const std::byte* stored, WeightBlock& block) {
  block.scale = load_half(stored);
  const unsigned high = load_half(stored + 2);
  for (int i = 0; i < 8; ++i) {
    const unsigned low = (byte_at(stored + 4, i / 2) >> i % 2 * 4) & 15U;
    block.scales[i] = static_cast<std::int8_t>(static_cast<int>(low | ((high >> 2 * i) & 3U) << 4) - 32);
    const std::byte* codes = stored + 8 + i * 16;
    for (int j = 0; j < 16; ++j) {
      block.codes[i * 32 + j] = static_cast<std::uint8_t>(byte_at(codes, j) & 15U);
      block.codes[i * 32 + 16 + j] = static_cast<std::uint8_t>(byte_at(codes, j) >> 4);
    }
  }
}

}  // namespace

void split_super_block(WeightType type, const std::byte* stored, WeightBlock& block) noexcept {
  std::memset(block.codes, 0, sizeof(block.codes));
  switch (type) {
    case WeightType::kQ2_K:
      return split_q2_k(stored, block);
    case WeightType::kQ3_K:
      return split_q3_k(stored, block);
    case WeightType::kQ4_K:
      return split_q4_k(stored, block);
    case WeightType::kQ5_K:
      return split_q5_k(stored, block);
    case WeightType::kQ6_K:
      return split_q6_k(stored, block);
    case WeightType::kIQ4_XS:
      return split_iq4_xs(stored, block);
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
