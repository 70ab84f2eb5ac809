// Expands packed weights with integer scales (Summing::kParts) into tiles of bytes.
//
// A code times its part's multiplier fits 16 bits, and is kept as 256 * high + low, high signed, low unsigned. Limit: six operations and
// two stores for 64 weights, about four cycles.
#pragma once

#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/weight_codes.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::amx {

constexpr int kGroupSteps = kGroupBlocks / 2;  // tiles of 64 inputs
constexpr int kMostGroupSteps = kMostGroupBlocks / 2;

// The bytes of one group of one panel.
struct ExpandedGroup {
  alignas(64) std::byte low[kMostGroupSteps * kTileBytes];
  alignas(64) std::byte high[kMostGroupSteps * kTileBytes];
};

// Minimums of a group: none, or integers that a tile product adds up.
enum class Minimums { kNone, kInTile };

// What its integer sums are multiplied by.
struct GroupScales {
  __m512 scale;
  __m512 minimum;  // kInTile: of the group
  // kInTile: each part's as pairs of the same bf16, [part][16][2], between zeros where both tiles of a pair share the tile of their sums.
  alignas(64) std::byte minimum_lines[3 * kGroupBlocks * kTileRowBytes] = {};

  // What the sums of tile `tile` of a pair are multiplied by.
  const std::byte* minimums_of(int parts, int tile) const {
    return minimum_lines + (parts == 1 && tile == 0 ? kGroupBlocks * kTileRowBytes : 0);
  }
};

// The parts of a matrix product that stay the same.
struct QuantizedShape {
  BlockForm form;
  PanelLayout layout;
  std::int64_t blocks;

  std::int64_t group_end(std::int64_t begin) const { return kernels::group_end(form.codes, begin, blocks); }
};

// A part's multipliers for the even and for the odd bytes of each output's four codes: magnitudes, and where they are negative.
struct Multipliers {
  __m512i even;
  __m512i odd;
  __mmask64 negative;
};

// By byte shuffles, as below.
[[gnu::always_inline]] static inline Multipliers spread(__m512i multipliers) {
  const __m512i size = _mm512_abs_epi32(multipliers);
  const __m512i to_even = _mm512_broadcast_i32x4(_mm_set_epi8(-1, 12, -1, 12, -1, 8, -1, 8, -1, 4, -1, 4, -1, 0, -1, 0));
  const __m512i to_odd = _mm512_broadcast_i32x4(_mm_set_epi8(12, -1, 12, -1, 8, -1, 8, -1, 4, -1, 4, -1, 0, -1, 0, -1));
  const __mmask64 negative = _mm512_movepi8_mask(_mm512_srai_epi32(multipliers, 31));
  return {_mm512_shuffle_epi8(size, to_even), _mm512_shuffle_epi8(size, to_odd), negative};
}

// What multiplies codes: kPlain has no bias and nothing negative, kPositive nothing negative. Negative multipliers negate the codes.
enum class Signs { kPlain, kPositive, kNegating };

// Splits the products of 16 * 4 codes and their multipliers into bytes.
template <Signs kSigns>
[[gnu::always_inline]] static inline void store_products(__m512i codes, __m512i bias, const Multipliers& by, std::byte* low,
                                                         std::byte* high) {
  const __m512i value = kSigns == Signs::kPlain ? codes : _mm512_sub_epi8(codes, bias);
  const __m512i signed_value = kSigns == Signs::kNegating ? _mm512_mask_sub_epi8(value, by.negative, bias, codes) : value;
  const __m512i even = _mm512_maddubs_epi16(by.even, signed_value);
  const __m512i odd = _mm512_maddubs_epi16(by.odd, signed_value);
  // By byte shuffles rather than shifts, which would wait for the port of the multiplications.
  const __m512i swapped = _mm512_broadcast_i32x4(_mm_set_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
  _mm512_store_si512(low, _mm512_mask_shuffle_epi8(even, 0xAAAAAAAAAAAAAAAAU, odd, swapped));
  _mm512_store_si512(high, _mm512_mask_shuffle_epi8(odd, 0x5555555555555555U, even, swapped));
}

// Expands one part of a K block, whose codes lie at `block`.
template <CodeForm kForm, Signs kSigns>
[[gnu::always_inline]] static inline void expand_part(const std::byte* block, int part, __m512i table, __m512i bias, const Multipliers& by,
                                                      std::byte* low, std::byte* high) {
  constexpr int kGroups = 8 / kForm.parts;
#pragma GCC unroll 8
  for (int i = 0; i < kGroups; ++i) {
    const int g = part * kGroups + i;
    const __m512i codes = avx512::group_codes<kForm>(_mm512_load_si512(block + g % kForm.low_bits * 64), block, g, table);
    store_products<kSigns>(codes, bias, by, low + g * 64, high + g * 64);
  }
}

// Expands one K block into 8 rows of both tiles.
template <CodeForm kForm, Minimums kMinimums>
[[gnu::always_inline]] static inline void expand_block(const QuantizedShape& shape, const std::byte* panel, std::int64_t b, __m512i table,
                                                       __m512i bias, std::byte* low, std::byte* high) {
  const std::byte* block = codes_at(shape.layout, panel, b);
  const std::byte* scales = scales_at(shape.layout, panel, b);
  for (int part = 0; part < kForm.parts; ++part) {
    const Multipliers by = spread(avx512::load_subs<kForm.parts>(shape.layout, scales, part, 0));
    if constexpr (kMinimums == Minimums::kInTile) {  // the integer scales of such types are unsigned
      expand_part<kForm, Signs::kPlain>(block, part, table, bias, by, low, high);
    } else if (by.negative == 0) {
      expand_part<kForm, Signs::kPositive>(block, part, table, bias, by, low, high);
    } else {
      expand_part<kForm, Signs::kNegating>(block, part, table, bias, by, low, high);
    }
  }
}

template <CodeForm kForm, Minimums kMinimums>
static inline void load_minimums(const QuantizedShape& shape, const std::byte* panel, std::int64_t begin, GroupScales& out) {
  if constexpr (kMinimums == Minimums::kInTile) {
    out.minimum = avx512::load_supers(group_at(shape.layout, panel, begin), 1);
    std::byte* line = out.minimum_lines + (kForm.parts == 1 ? kGroupBlocks * kTileRowBytes : 0);
    for (std::int64_t b = begin; b < begin + kGroupBlocks; ++b) {
      const std::byte* scales = scales_at(shape.layout, panel, b);
      for (int part = 0; part < kForm.parts; ++part, line += kTileRowBytes) {
        const __m512i integers = avx512::load_subs<kForm.parts>(shape.layout, scales, part, 1);
        const __m512i bits = _mm512_castps_si512(_mm512_cvtepi32_ps(integers));
        _mm512_store_si512(line, _mm512_or_si512(bits, _mm512_srli_epi32(bits, 16)));
      }
    }
  }
}

// Expands the group of K blocks from `begin` on. An odd number of blocks ends within a tile. With each block `lines` lines from `next` on
// are fetched, since memory would have nothing to do meanwhile; returns what follows them.
template <CodeForm kForm, Minimums kMinimums>
static const std::byte* expand_group(const QuantizedShape& shape, const std::byte* panel, std::int64_t begin, ExpandedGroup& out,
                                     GroupScales& scales, const std::byte* next, std::int64_t lines) {
  const std::int64_t end = shape.group_end(begin);
  scales.scale = avx512::load_supers(group_at(shape.layout, panel, begin), 0);
  load_minimums<kForm, kMinimums>(shape, panel, begin, scales);
  __m512i table = _mm512_setzero_si512();
  if constexpr (kForm.table) table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(shape.form.table)));
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(shape.form.bias));
  for (std::int64_t b = begin; b < end; ++b) {
    next = prefetch_lines<kSecondLevel>(next, lines);
    expand_block<kForm, kMinimums>(shape, panel, b, table, bias, out.low + (b - begin) * 512, out.high + (b - begin) * 512);
  }
  for (std::int64_t line = (end - begin) * 8; line % kTileRows != 0; ++line) {
    _mm512_store_si512(out.low + line * 64, _mm512_setzero_si512());
    _mm512_store_si512(out.high + line * 64, _mm512_setzero_si512());
  }
  return next;
}

// What expand_group is for one form.
using ExpandGroup = const std::byte* (*)(const QuantizedShape&, const std::byte*, std::int64_t, ExpandedGroup&, GroupScales&,
                                         const std::byte*, std::int64_t);

}  // namespace braid::kernels::amx
