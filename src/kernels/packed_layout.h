// The layout of packed weights and of prepared activations, one for all tiers. No function here is a weak symbol, because sources of wide
// ISAs include this file.
//
// Float types: for every input k the weights of the panel's 16 outputs, in the stored type.
//
// Quantised types: a panel is a row of groups of 8 K blocks of 32 inputs, of grouped types 16; the last one may have fewer or a few more
// (group_end). A group has its scales, then its codes, so that who multiplies one row reads a panel, and panel after panel, from its first byte to its last, as
// memory likes best.
//
// Codes come in groups of 64 bytes: byte 4 * o + j of group g belongs to output o and input 4 * g + j of the block, which is the
// order that vpdpbusd multiplies in, one lane for each output (and a tile's, on AMX). The 8 groups of a block are packed in planes:
// a plane of B bits takes B times 64 bytes, and group g lies in its bytes of number g % B, from bit g / B * B on. A block has the
// plane of its codes' low bits, then that of their high bits if there are any (CodeForm).
//
// Scales of a block, 16 of each, one for an output: f16 or bf16 scales, then f16 minimums; or int8 scales of each part, then int8
// minimums of each part, or bytes of each part with both, the scale in the low half, where 4 bits hold them (Q2_K). The latter multiply f16
// scales and minimums of the group, which come first in it (supers). Codes with one scale for a group have it there.
//
// Of types with a scale for 32 weights (Summing::kBlock) activations have a float scale X for 32 values, and block after block
//   y = fma(fma(M + sum of code * x, scale, -M * scale), X, y), then with minimums y = fma(minimum, X * sum of x, y)
// M = kRoundMagic makes a float of an integer sum that was started at its bits: the sum is below 2^20 and M * scale is exact, so the inner
// fma rounds sum * scale.
//
// Of 256-value types (Summing::kParts) products are integers within a group, for which activations have one scale X:
//   y = fma(float(sum over parts of scale * sum of code * x), f16 scale * X, y), group after group
//   y = fma(float(sum over parts of minimum * sum of x), f16 minimum * X, y), with minimums
// Of a grouped type (Summing::kGroup): y = fma(float(sum of code * x), scale * X, y), x being codes of the rotated row.
//
// Nothing is rounded in packing: scales and minimums are what the file says, and packed rows unpack to what dequantize_row gives.
//
// Unsigned codes carry a bias: sum (code + bias) * x = sum code * x + bias * sum x. Prepared activations bring -bias * sum x for
// each part (of a grouped type: each group), so that the integer sum starts there and the bias costs nothing. Types with minimums have no bias.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/weight_block.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// K blocks of a group. Its activations share a scale, and its weights f16 ones, in ScaleForm::kSub and kGroup.
constexpr std::int64_t kGroupBlocks = 8;
constexpr std::int64_t kWideGroupBlocks = 16;  // of grouped types (Summing::kGroup)
// Too few for a group of their own: the last group takes them, since a group costs as much whatever is in it. Its sums still fit 32 bits.
constexpr std::int64_t kLeftBlocks = 4;
constexpr std::int64_t kMostGroupBlocks = kGroupBlocks + kLeftBlocks;
constexpr std::int64_t kMostWideGroupBlocks = kWideGroupBlocks + kLeftBlocks;
[[gnu::always_inline]] static constexpr std::int64_t blocks_of_group(const CodeForm& form) {
  return form.summing == Summing::kGroup ? kWideGroupBlocks : kGroupBlocks;
}
// The end of the group that begins with block `begin`, of `blocks`.
[[gnu::always_inline]] static constexpr std::int64_t group_end(const CodeForm& form, std::int64_t begin, std::int64_t blocks) {
  return blocks - begin <= blocks_of_group(form) + kLeftBlocks ? blocks : begin + blocks_of_group(form);
}
[[gnu::always_inline]] static constexpr std::int64_t group_count(const CodeForm& form, std::int64_t blocks) {
  std::int64_t groups = 0;
  for (std::int64_t begin = 0; begin < blocks; begin = group_end(form, begin, blocks)) ++groups;
  return groups;
}

// Bytes within one panel; panels, and the codes in them, start at multiples of 64.
struct PanelLayout {
  int group_shift = 3;            // a group is 1 << this K blocks
  std::int64_t block_codes = 0;   // of one K block's codes; of one input's 16 weights for float types
  std::int64_t block_scales = 0;  // of one K block's scales
  std::int64_t group = 0;         // from a group to the next
  std::int64_t scales = 0;        // from a group to its blocks' scales
  std::int64_t codes = 0;         // from a group to its blocks' codes
  std::int64_t last_group = 0;    // the first K block of the last group,
  std::int64_t last_codes = 0;    // and from that group to its codes
  bool nibbles = false;           // a part's int8 scale and minimum share a byte
  std::int64_t bytes = 0;
};
PanelLayout panel_layout(WeightType type, std::int64_t inputs) noexcept;

// The first K block of the group of K block b; that group, the block's scales and its codes.
[[gnu::always_inline]] static inline std::int64_t group_begin(const PanelLayout& layout, std::int64_t b) {
  return b < layout.last_group ? b >> layout.group_shift << layout.group_shift : layout.last_group;
}
[[gnu::always_inline]] static inline const std::byte* group_at(const PanelLayout& layout, const std::byte* panel, std::int64_t b) {
  return panel + (group_begin(layout, b) >> layout.group_shift) * layout.group;
}
[[gnu::always_inline]] static inline const std::byte* scales_at(const PanelLayout& layout, const std::byte* panel, std::int64_t b) {
  return group_at(layout, panel, b) + layout.scales + (b - group_begin(layout, b)) * layout.block_scales;
}
[[gnu::always_inline]] static inline const std::byte* codes_at(const PanelLayout& layout, const std::byte* panel, std::int64_t b) {
  const std::int64_t codes = b < layout.last_group ? layout.codes : layout.last_codes;
  return group_at(layout, panel, b) + codes + (b - group_begin(layout, b)) * layout.block_codes;
}

// Byte offsets within one prepared row of a quantised type: int8 codes of the row, padded to 64 bytes with anything, then a float scale
// for each group, or block in Summing::kBlock, then the int32 start of each part's sum (in Summing::kBlock with kRoundMagicBits added), then
// only where weights have minimums: the int16 sum of each part's codes in ScaleForm::kSub, else each block's sum times its scale, as float. Rows are an odd number of cache lines apart, so that rows of a
// tile fall into different sets.
struct PreparedLayout {
  std::int64_t scales = 0;
  std::int64_t starts = 0;
  std::int64_t sums = 0;
  std::int64_t bytes = 0;  // of a row, for float types too
};
PreparedLayout prepared_layout(WeightType type, std::int64_t inputs) noexcept;

bool is_quantized(WeightType type) noexcept;

// Of one output's weights: the codes of K block b through the type's table, its scale and its minimum (0 without one). `lane` is
// the output's place in the panel.
void unpack_codes(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, std::int64_t lane,
                  std::uint8_t* codes) noexcept;
float unpack_scale(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, int part,
                   std::int64_t lane) noexcept;
// The integer scale (kind 0) or minimum (kind 1) of a part of K block b, in ScaleForm::kSub.
std::int8_t unpack_sub(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, int kind, int part,
                       std::int64_t lane) noexcept;
// The f16 scale (kind 0) or minimum (kind 1) of K block b's group, in ScaleForm::kSub.
float unpack_super(const PanelLayout& layout, const std::byte* panel, std::int64_t b, int kind, std::int64_t lane) noexcept;
float unpack_minimum(const BlockForm& form, const PanelLayout& layout, const std::byte* panel, std::int64_t b, int part,
                     std::int64_t lane) noexcept;

// The entries of every tier's KernelTable.
std::size_t packed_bytes(WeightType type, std::int64_t outputs, std::int64_t inputs) noexcept;
void pack(WeightType type, const std::byte* stored, std::int64_t outputs, std::int64_t inputs, std::byte* packed, std::int64_t panel_begin,
          std::int64_t panel_end) noexcept;
void unpack_row(const PackedMatrix& weights, std::int64_t output, float* out) noexcept;
std::size_t prepared_bytes(WeightType type, std::int64_t inputs, std::int64_t rows) noexcept;

}  // namespace braid::kernels
