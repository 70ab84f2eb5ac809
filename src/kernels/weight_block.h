// What all quantised types have in common: a stored block is codes, scales and perhaps minimums, and
//   value = (code - bias) * scale + minimum       the code taken through a table of 16 where the type has one
// Splitting a block into these parts is the definition of a type; dequantising and packing are built on it. Layouts: ggml's block
// structures, as its gguf-py package dequantises them.
#pragma once

#include "kernels/weight_type.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// What is added up as integers before it becomes a float.
enum class Summing {
  kBlock,  // 32 products: weights and activations have a float scale each for 32 values
  kParts,  // sums of parts times integer scales, of a group (packed_layout.h) with one float scale
  kGroup,  // all products of a group with one scale, whose weights and activations are rotated (rotation.h)
};

// Codes are unsigned; their low and high bits are packed in planes of their own. `parts`: how many scales 32 values have, 1 or 2, unless
// all values of a group have one.
struct CodeForm {
  int low_bits;   // 8, 4 or 2
  int high_bits;  // 0, 1 or 2
  int parts;
  bool table;  // 4-bit codes stand for 8-bit ones
  bool minimums;
  Summing summing;
};
constexpr CodeForm kCodes8{8, 0, 1, false, false, Summing::kBlock};
constexpr CodeForm kCodes8Grouped{8, 0, 1, false, false, Summing::kGroup};
constexpr CodeForm kCodes4{4, 0, 1, false, false, Summing::kBlock};
constexpr CodeForm kCodes4Minimums{4, 0, 1, false, true, Summing::kBlock};
constexpr CodeForm kCodes4Table{4, 0, 1, true, false, Summing::kBlock};
constexpr CodeForm kCodes5{4, 1, 1, false, false, Summing::kBlock};
constexpr CodeForm kCodes5Minimums{4, 1, 1, false, true, Summing::kBlock};
constexpr CodeForm kCodes4Parts{4, 0, 1, false, true, Summing::kParts};
constexpr CodeForm kCodes4TableParts{4, 0, 1, true, false, Summing::kParts};
constexpr CodeForm kCodes5Parts{4, 1, 1, false, true, Summing::kParts};
constexpr CodeForm kCodes6{4, 2, 2, false, false, Summing::kParts};
constexpr CodeForm kCodes2{2, 0, 2, false, true, Summing::kParts};
constexpr CodeForm kCodes3{2, 1, 2, false, false, Summing::kParts};

// Calls `visitor`, whose template parameter is a CodeForm, with the one of these that `form` is.
template <class Visitor>
decltype(auto) with_form(const CodeForm& form, const Visitor& visitor) {
  const bool of_blocks = form.summing == Summing::kBlock;
  switch (form.low_bits * 4 + form.high_bits) {
    case 8 * 4:
      return of_blocks ? visitor.template operator()<kCodes8>() : visitor.template operator()<kCodes8Grouped>();
    case 4 * 4:
      if (form.table) return of_blocks ? visitor.template operator()<kCodes4Table>() : visitor.template operator()<kCodes4TableParts>();
      if (!of_blocks) return visitor.template operator()<kCodes4Parts>();
      return form.minimums ? visitor.template operator()<kCodes4Minimums>() : visitor.template operator()<kCodes4>();
    case 4 * 4 + 1:
      if (!of_blocks) return visitor.template operator()<kCodes5Parts>();
      return form.minimums ? visitor.template operator()<kCodes5Minimums>() : visitor.template operator()<kCodes5>();
    case 4 * 4 + 2:
      return visitor.template operator()<kCodes6>();
    case 2 * 4:
      return visitor.template operator()<kCodes2>();
    default:
      return visitor.template operator()<kCodes3>();
  }
}

enum class ScaleForm {
  kF16,    // one for 32 values
  kBF16,   // the same
  kSub,    // f16 for 256 values, times an int8 for each part of 32; so is the minimum
  kGroup,  // one f16 for a group
};

struct BlockForm {
  CodeForm codes;
  ScaleForm scales;
  std::int32_t bias;
  const std::uint8_t* table;  // 16 codes; null without one
  bool nibbles = false;       // kSub: scales and minimums are of 4 bits, unsigned
};

// Null for float types.
const BlockForm* block_form(WeightType type) noexcept;

// One stored block of 32 or 256 values.
struct WeightBlock {
  std::uint8_t codes[256];
  std::int8_t scales[16];    // kSub: of each part, in order
  std::int8_t minimums[16];  // kSub: of each part, in order
  std::uint16_t scale;
  std::uint16_t minimum;  // f16
};

// Fills what the type's form has; `type` is quantised.
void split_block(WeightType type, const std::byte* stored, WeightBlock& block) noexcept;

// Blocks of 256 values; split_block calls it for them.
void split_super_block(WeightType type, const std::byte* stored, WeightBlock& block) noexcept;

}  // namespace braid::kernels
