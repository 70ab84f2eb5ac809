// The layouts of blocks of 256 values, written from scales, minimums and codes (weight_super_block.cpp reads them).
#pragma once

#include "kernels/encode_block.h"

namespace braid::kernels {

// For each 128 values, 32 bytes with four runs of 32 two-bit codes.
inline void put_two_bits(const unsigned* codes, BlockWriter& out) {
  for (int i = 0; i < 64; ++i) {
    const unsigned* first = codes + i / 32 * 128 + i % 32;
    out.put_byte((first[0] & 3U) | (first[32] & 3U) << 2 | (first[64] & 3U) << 4 | (first[96] & 3U) << 6);
  }
}

// Bit r of byte i is bit `bit` of value i of run r.
inline void put_high_bits(const unsigned* codes, int bit, BlockWriter& out) {
  for (int i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (int run = 0; run < 8; ++run) bits |= ((codes[run * 32 + i] >> bit) & 1U) << run;
    out.put_byte(bits);
  }
}

// value = code * scale * scales[part] - minimum * minimums[part]; 16 parts of Q2_K, 8 of the others.
template <int kParts>
struct FromMinimum {
  float scale = 0.0F;
  float minimum = 0.0F;
  unsigned scales[kParts] = {};
  unsigned minimums[kParts] = {};
  unsigned codes[256] = {};
};

// value = (code - half) * scale * (scales[part] less what its type subtracts)
template <int kParts>
struct Symmetric {
  float scale = 0.0F;
  unsigned scales[kParts] = {};
  unsigned codes[256] = {};
};

inline void put_q2_k(const FromMinimum<16>& block, BlockWriter out) {
  for (int part = 0; part < 16; ++part) out.put_byte(block.scales[part] | block.minimums[part] << 4);
  put_two_bits(block.codes, out);
  out.put_half(block.scale);
  out.put_half(block.minimum);
}

// Scales are 32 more than they are.
inline void put_q3_k(const Symmetric<16>& block, BlockWriter out) {
  const unsigned* scales = block.scales;
  put_high_bits(block.codes, 2, out);
  put_two_bits(block.codes, out);
  for (int i = 0; i < 8; ++i) out.put_byte((scales[i] & 15U) | (scales[i + 8] & 15U) << 4);
  for (int i = 0; i < 4; ++i) out.put_byte(scales[i] >> 4 | scales[i + 4] >> 4 << 2 | scales[i + 8] >> 4 << 4 | scales[i + 12] >> 4 << 6);
  out.put_half(block.scale);
}

// Q4_K, or with `fifth_bits` Q5_K.
inline void put_k_minimum(const FromMinimum<8>& block, bool fifth_bits, BlockWriter out) {
  const unsigned* scales = block.scales;
  const unsigned* minimums = block.minimums;
  out.put_half(block.scale);
  out.put_half(block.minimum);
  for (int i = 0; i < 4; ++i) out.put_byte(scales[i] | scales[i + 4] >> 4 << 6);
  for (int i = 0; i < 4; ++i) out.put_byte(minimums[i] | minimums[i + 4] >> 4 << 6);
  for (int i = 4; i < 8; ++i) out.put_byte((scales[i] & 15U) | (minimums[i] & 15U) << 4);
  if (fifth_bits) put_high_bits(block.codes, 4, out);
  for (int i = 0; i < 128; ++i) {
    const int low = i / 32 * 64 + i % 32;
    out.put_byte((block.codes[low] & 15U) | (block.codes[low + 32] & 15U) << 4);
  }
}

// Scales are bytes in two's complement.
inline void put_q6_k(const Symmetric<16>& block, BlockWriter out) {
  for (int i = 0; i < 128; ++i) {
    const int low = i / 64 * 128 + i % 64;
    out.put_byte((block.codes[low] & 15U) | (block.codes[low + 64] & 15U) << 4);
  }
  for (int i = 0; i < 64; ++i) {
    const unsigned* first = block.codes + i / 32 * 128 + i % 32;
    out.put_byte(first[0] >> 4 | first[32] >> 4 << 2 | first[64] >> 4 << 4 | first[96] >> 4 << 6);
  }
  for (const unsigned small : block.scales) out.put_byte(small & 255U);
  out.put_half(block.scale);
}

// Scales are 32 more than they are.
inline void put_iq4_xs(const Symmetric<8>& block, BlockWriter out) {
  unsigned high = 0;
  for (int run = 0; run < 8; ++run) high |= block.scales[run] >> 4 << 2 * run;
  out.put_half(block.scale);
  out.put(static_cast<std::uint16_t>(high));
  for (int i = 0; i < 4; ++i) out.put_byte((block.scales[2 * i] & 15U) | (block.scales[2 * i + 1] & 15U) << 4);
  for (int run = 0; run < 8; ++run) out.put_halves(block.codes + run * 32);
}

}  // namespace braid::kernels
