// The layout of packed weights and of prepared activations, one for all tiers. The functions are compiled once, for any machine:
// none is inline, because sources of wide ISAs include this file.
//
// Float types: for every input k the weights of the panel's 16 outputs, in the stored type.
//
// Quantised types: all codes of a panel, then its scales. For every K block of 32 inputs the scales are 16 f16, one for each
// output. Codes come in groups of 64 bytes: byte 4 * o + j of group g belongs to output o and input 4 * g + j of the block, which
// is the order that vpdpbusd multiplies in, one lane for each output (and a tile's, on AMX).
//   Q8_0  8 groups, code + 128 as unsigned bytes
//   Q4_0  4 groups; the low halves are groups 0 to 3, the high halves groups 4 to 7, codes 0 to 15 as stored
// Unsigned codes carry a bias: sum (code + bias) * x = sum code * x + bias * sum x. Prepared activations bring -bias * sum x for
// each block, so that the integer sum starts there and the bias costs nothing.
#pragma once

#include <kernels/kernel_table.h>

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Byte offsets within one panel; a panel starts at a multiple of 64.
struct PanelLayout {
  std::int64_t block_codes = 0;  // bytes of one K block's codes; of one input's 16 weights for float types
  std::int64_t scales = 0;       // from the panel to its scales
  std::int64_t bytes = 0;
};
PanelLayout panel_layout(WeightType type, std::int64_t inputs) noexcept;

// Byte offsets within one prepared row of a quantised type: int8 codes of the row, then a float scale for each block of 32, then
// the int32 start of each block's sum.
struct PreparedLayout {
  std::int64_t scales = 0;
  std::int64_t starts = 0;
  std::int64_t bytes = 0;  // of a row, for float types too
};
PreparedLayout prepared_layout(WeightType type, std::int64_t inputs) noexcept;

bool is_quantized(WeightType type) noexcept;
std::int32_t code_bias(WeightType type) noexcept;

// The entries of every tier's KernelTable.
std::size_t packed_bytes(WeightType type, std::int64_t outputs, std::int64_t inputs) noexcept;
void pack(WeightType type, const std::byte* stored, std::int64_t outputs, std::int64_t inputs, std::byte* packed,
          std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void unpack_row(const PackedMatrix& weights, std::int64_t output, float* out) noexcept;
std::size_t prepared_row_bytes(WeightType type, std::int64_t inputs) noexcept;

}  // namespace braid::kernels
