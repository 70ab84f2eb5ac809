// Products of 8-bit activations with weights of up to 8 bits by vpmaddubsw, exactly:
//   8-bit codes, stored or from a table: two products of unsigned ones overflow 16 bits, so the sign moves from the weight to the
//                activation: |w| * (x sign w), at most 2 * 128 * 127
//   fewer bits   as many groups as fit 16 bits are summed there: 2 * 63 * 127 twice, 2 * 31 * 127 four times, 2 * 15 * 127 eight times
// Then vpmaddwd widens to 32 bits: by one, or where a group has one integer sum by the part's integer scale.
//
// Compiled with AVX-VNNI (matmul_vnni.cpp) it takes vpdpbusd instead, which adds four products of unsigned codes to 32 bits at once; sums
// then start where the activations say, which makes up for the codes' bias. The sums are the same.
//
// A tile is kRows rows by one panel of two vectors: both of them side by side for few rows, else in turns, so that sums and what is added to
// them stay in the 16 registers.
//
// Limits. Many rows: multiplications and signs, of which two start in a cycle. One row: the reading of memory.
#pragma once

#include "kernels/avx2/tier.h"
#include "kernels/avx2/weight_codes.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::avx2 {
namespace {

#ifdef __AVXVNNI__
constexpr bool kVnni = true;
[[gnu::always_inline]] inline __m256i add_fours(__m256i sum, __m256i codes, __m256i x) { return _mm256_dpbusd_avx_epi32(sum, codes, x); }
#else
constexpr bool kVnni = false;
[[gnu::always_inline]] inline __m256i add_fours(__m256i sum, __m256i, __m256i) { return sum; }  // never called
#endif

constexpr int kMostRows = 5;

template <int kRows>
constexpr int kWidth = kRows <= 2 ? 2 : 1;  // vectors side by side

struct Tile {
  const std::byte* panel;
  PanelLayout layout;
  const std::byte* x;  // kRows prepared rows
  PreparedLayout row;
  std::int64_t blocks;
  ScaleForm scales;
  const std::uint8_t* table;
  float* out;  // of the first row
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  bool past_caches;
  NextLines next;          // the next panel, so that memory works while rows are multiplied: a turn with each K block
  std::int64_t next_turn;  // of the first block
};

// Of rows times vectors of outputs.
template <int kRows>
using IntegerSums = __m256i[kRows][kWidth<kRows>];
template <int kRows>
using FloatSums = __m256[kRows][kWidth<kRows>];

// gcc puts additions off until their sum is needed, and spills all that they add, unless it is needed at once.
[[gnu::always_inline]] inline void keep(__m256i& sum) { __asm__("" : "+x"(sum)); }

// Adds one part of a K block, from signed codes, to integer sums. by: what its products are multiplied by, as int16 twice.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_signed(const Tile& tile, const std::byte* codes, std::int64_t b, int first_half, __m256i table,
                                              const __m256i (&by)[kWidth<kRows>], IntegerSums<kRows>& total) {
  const std::byte* x = tile.x + b * kBlockValues;
  const __m256i flip = _mm256_set1_epi8(-128);  // the bias
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
#pragma GCC unroll 2
    for (int i = 0; i < kWidth<kRows>; ++i) {
      const __m256i weight = _mm256_xor_si256(group_codes<kForm>(codes, g, first_half + i, table), flip);
      const __m256i size = _mm256_abs_epi8(weight);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i four = broadcast_int(x + r * tile.row.bytes + g * 4);
        const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(four, weight));
        total[r][i] = _mm256_add_epi32(total[r][i], _mm256_madd_epi16(pairs, by[i]));
        keep(total[r][i]);
      }
    }
  }
}

// The same from unsigned codes of up to 6 bits.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_unsigned(const Tile& tile, const std::byte* codes, std::int64_t b, int part, int first_half,
                                                const __m256i (&by)[kWidth<kRows>], IntegerSums<kRows>& total) {
  constexpr int kGroups = 8 / kForm.parts;
  constexpr int kBits = kForm.low_bits + kForm.high_bits;
  constexpr int kRun = kBits == 6 ? 2 : kBits == 5 ? 4 : kGroups;  // groups that fit 16 bits
  const std::byte* x = tile.x + b * kBlockValues;
#pragma GCC unroll 4
  for (int run = 0; run < kGroups / kRun; ++run) {
    IntegerSums<kRows> pairs;
#pragma GCC unroll 8
    for (int k = 0; k < kRun; ++k) {
      const int g = part * kGroups + run * kRun + k;
#pragma GCC unroll 2
      for (int i = 0; i < kWidth<kRows>; ++i) {
        const __m256i weight = group_codes<kForm>(codes, g, first_half + i, _mm256_setzero_si256());
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const __m256i products = _mm256_maddubs_epi16(weight, broadcast_int(x + r * tile.row.bytes + g * 4));
          pairs[r][i] = k == 0 ? products : _mm256_add_epi16(pairs[r][i], products);
          keep(pairs[r][i]);
        }
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kWidth<kRows>; ++i) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) total[r][i] = _mm256_add_epi32(total[r][i], _mm256_madd_epi16(pairs[r][i], by[i]));
    }
  }
}

// The same from unsigned codes of any size, times one, to sums that were started for their bias.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_dots(const Tile& tile, const std::byte* codes, std::int64_t b, int part, int first_half,
                                            __m256i table, IntegerSums<kRows>& total) {
  constexpr int kGroups = 8 / kForm.parts;
  const std::byte* x = tile.x + b * kBlockValues;
#pragma GCC unroll 8
  for (int g = part * kGroups; g < (part + 1) * kGroups; ++g) {
#pragma GCC unroll 2
    for (int i = 0; i < kWidth<kRows>; ++i) {
      const __m256i weight = group_codes<kForm>(codes, g, first_half + i, table);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) total[r][i] = add_fours(total[r][i], weight, broadcast_int(x + r * tile.row.bytes + g * 4));
    }
  }
}

// The same from any codes.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_products(const Tile& tile, const std::byte* codes, std::int64_t b, int part, int first_half,
                                                __m256i table, const __m256i (&by)[kWidth<kRows>], IntegerSums<kRows>& total) {
  if constexpr (kVnni) {
    add_dots<kForm, kRows>(tile, codes, b, part, first_half, table, total);
  } else if constexpr (kForm.low_bits == 8 || kForm.table) {
    add_signed<kForm, kRows>(tile, codes, b, first_half, table, by, total);
  } else {
    add_unsigned<kForm, kRows>(tile, codes, b, part, first_half, by, total);
  }
}

template <int kRows>
[[gnu::always_inline]] inline void fill(IntegerSums<kRows>& sums, __m256i value) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kWidth<kRows>; ++i) sums[r][i] = value;
  }
}

// Sums that start at the int32 `index` of the rows' starts.
template <int kRows>
[[gnu::always_inline]] inline void load_starts(const Tile& tile, std::int64_t index, IntegerSums<kRows>& sums) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i start = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + index * 4);
#pragma GCC unroll 2
    for (int i = 0; i < kWidth<kRows>; ++i) sums[r][i] = start;
  }
}

// Adds one part of a K block to the integer sums of its group (Summing::kParts).
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_part(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b, int part,
                                            int first_half, __m256i table, IntegerSums<kRows>& total) {
  __m256i wide[kWidth<kRows>];
  __m256i pairs[kWidth<kRows>];
#pragma GCC unroll 2
  for (int i = 0; i < kWidth<kRows>; ++i) {
    wide[i] = load_subs<kForm.parts>(tile.layout, scales, part, 0, first_half + i);
    pairs[i] = _mm256_blend_epi16(wide[i], _mm256_slli_epi32(wide[i], 16), 0xAA);
  }
  if constexpr (kVnni) {
    IntegerSums<kRows> sums;
    load_starts<kRows>(tile, b * kForm.parts + part, sums);
    add_dots<kForm, kRows>(tile, codes, b, part, first_half, table, sums);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kWidth<kRows>; ++i) total[r][i] = _mm256_add_epi32(total[r][i], _mm256_mullo_epi32(wide[i], sums[r][i]));
    }
    return;
  }
  add_products<kForm, kRows>(tile, codes, b, part, first_half, table, pairs, total);
  if constexpr (kForm.table || kForm.minimums) return;  // codes with a sign, or without a bias
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i start = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + (b * kForm.parts + part) * 4);
#pragma GCC unroll 2
    for (int i = 0; i < kWidth<kRows>; ++i) total[r][i] = _mm256_add_epi32(total[r][i], _mm256_mullo_epi32(wide[i], start));
  }
}

// Adds the minimums of the group that begins at block `begin` to the float sums of vector i, which are those of half first_half + i.
template <int kParts, int kRows>
[[gnu::always_inline]] inline void add_minimums(const Tile& tile, std::int64_t begin, int first_half, int i, FloatSums<kRows>& acc) {
  const int half = first_half + i;
  __m256i total[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) total[r] = _mm256_setzero_si256();
  for (int pair = 0; pair < kGroupBlocks * kParts / 2; ++pair) {
    const __m256i minimums = load_minimum_pair<kParts>(tile.layout, tile.panel, begin, pair, half);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i x_sums = broadcast_int(tile.x + r * tile.row.bytes + tile.row.sums + begin * kParts * 2 + pair * 4);
      total[r] = _mm256_add_epi32(total[r], _mm256_madd_epi16(minimums, x_sums));
    }
  }
  const __m256 minimum = load_supers(group_at(tile.layout, tile.panel, begin), 1, half);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256 scale = _mm256_mul_ps(minimum, broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + begin / kGroupBlocks * 4));
    acc[r][i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[r]), scale, acc[r][i]);
  }
}

// Adds a K block, whose weights and rows have scales of their own (Summing::kBlock), to the float sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_block(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b,
                                             int first_half, __m256i table, FloatSums<kRows>& acc) {
  constexpr bool kBiased = kVnni || (kForm.low_bits < 8 && !kForm.table && !kForm.minimums);
  __m256i ones[kWidth<kRows>];
  IntegerSums<kRows> sum;
#pragma GCC unroll 2
  for (int i = 0; i < kWidth<kRows>; ++i) {
    ones[i] = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
      sum[r][i] = kBiased ? broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + b * 4) : _mm256_set1_epi32(kRoundMagicBits);
  }
  add_products<kForm, kRows>(tile, codes, b, 0, first_half, table, ones, sum);
#pragma GCC unroll 2
  for (int i = 0; i < kWidth<kRows>; ++i) {
    const __m256 scale = load_scales(tile.scales, scales, 0, first_half + i);
    const __m256 magic = _mm256_mul_ps(scale, _mm256_set1_ps(-kRoundMagic));
    const __m256 minimum = kForm.minimums ? load_scales(tile.scales, scales, 1, first_half + i) : _mm256_setzero_ps();
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const std::byte* const row = tile.x + r * tile.row.bytes;
      const __m256 scaled = _mm256_fmadd_ps(_mm256_castsi256_ps(sum[r][i]), scale, magic);
      acc[r][i] = _mm256_fmadd_ps(scaled, broadcast_float(row + tile.row.scales + b * 4), acc[r][i]);
      if constexpr (kForm.minimums) acc[r][i] = _mm256_fmadd_ps(minimum, broadcast_float(row + tile.row.sums + b * 4), acc[r][i]);
    }
  }
}

// Adds the group of K blocks [begin, end) to the float sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_group(const Tile& tile, std::int64_t begin, std::int64_t end, int first_half, __m256i table,
                                             FloatSums<kRows>& acc) {
  const std::byte* codes = codes_at(tile.layout, tile.panel, begin);
  const std::byte* scales = scales_at(tile.layout, tile.panel, begin);
  IntegerSums<kRows> total;
  if constexpr (kForm.summing != Summing::kBlock) fill<kRows>(total, _mm256_setzero_si256());
  if constexpr (kVnni && kForm.summing == Summing::kGroup) load_starts<kRows>(tile, begin / kWideGroupBlocks, total);
  for (std::int64_t b = begin; b < end; ++b, codes += tile.layout.block_codes, scales += tile.layout.block_scales) {
    if (first_half == 0) tile.next.fetch<kSecondLevel>(tile.next_turn + b);
    if constexpr (kForm.summing == Summing::kBlock) {
      add_block<kForm, kRows>(tile, codes, scales, b, first_half, table, acc);
    } else if constexpr (kForm.summing == Summing::kGroup) {
      const __m256i one = _mm256_set1_epi16(1);
      if constexpr (kWidth<kRows> == 1)
        add_products<kForm, kRows>(tile, codes, b, 0, first_half, table, {one}, total);
      else
        add_products<kForm, kRows>(tile, codes, b, 0, first_half, table, {one, one}, total);
    } else {
      add_part<kForm, kRows>(tile, codes, scales, b, 0, first_half, table, total);
      if constexpr (kForm.parts == 2) add_part<kForm, kRows>(tile, codes, scales, b, 1, first_half, table, total);
    }
  }
  if constexpr (kForm.summing == Summing::kBlock) return;
#pragma GCC unroll 2
  for (int i = 0; i < kWidth<kRows>; ++i) {
    const __m256 super = load_supers(group_at(tile.layout, tile.panel, begin), 0, first_half + i);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + begin / blocks_of_group(kForm) * 4);
      acc[r][i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[r][i]), _mm256_mul_ps(super, scale), acc[r][i]);
    }
    if constexpr (kForm.minimums) add_minimums<kForm.parts, kRows>(tile, begin, first_half, i, acc);
  }
}

template <CodeForm kForm, int kRows>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m256i table = _mm256_setzero_si256();
  if constexpr (kForm.table) table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile.table)));
  constexpr int kPasses = 2 / kWidth<kRows>;
  FloatSums<kRows> acc[kPasses];
  for (FloatSums<kRows>& pass : acc) {
    for (auto& row : pass) {
      for (__m256& sum : row) sum = _mm256_setzero_ps();
    }
  }
  // Group by group, so that the second pass finds its codes, which lie beside those of the first, in the first-level cache.
  for (std::int64_t begin = 0; begin < tile.blocks; begin = group_end(kForm, begin, tile.blocks)) {
    for (int pass = 0; pass < kPasses; ++pass) {
      add_group<kForm, kRows>(tile, begin, group_end(kForm, begin, tile.blocks), pass * kWidth<kRows>, table, acc[pass]);
    }
  }
  for (int half = 0; half < 2; ++half) {
    for (int r = 0; r < kRows; ++r) {
      store_outputs(tile.out + r * tile.out_stride + half * 8, tile.outputs - half * 8, tile.accumulate, tile.past_caches,
                    acc[half / kWidth<kRows>][r][half % kWidth<kRows>]);
    }
  }
}

using Multiply = void (*)(const Tile&);
using Tiles = Multiply[kMostRows];

// [rows - 1]
template <CodeForm kForm>
constexpr Tiles kTiles = {multiply<kForm, 1>, multiply<kForm, 2>, multiply<kForm, 3>, multiply<kForm, 4>, multiply<kForm, 5>};

// All rows times one panel, the rows in tiles of nearly equal height.
void multiply_panel(const Tiles& tiles, Tile tile, std::int64_t rows, bool side_by_side) {
  std::int64_t count = (rows + kMostRows - 1) / kMostRows;
  tile.next = NextLines(tile.panel + tile.layout.bytes, tile.layout.bytes, tile.blocks * count, side_by_side);
  tile.next_turn = 0;
  for (; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    tiles[height - 1](tile);
    tile.next_turn += tile.blocks;
    tile.x += height * tile.row.bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

void multiply_panels(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) {
  if (args.rows == 0) return;
  const PackedMatrix& w = *args.weights;
  const BlockForm& form = *block_form(w.type);
  const Tiles& tiles = *with_form(form.codes, []<CodeForm kForm>() { return &kTiles<kForm>; });
  Tile tile{};
  tile.layout = panel_layout(w.type, w.inputs);
  tile.row = prepared_layout(w.type, w.inputs);
  tile.x = args.prepared;
  tile.blocks = w.inputs / kBlockValues;
  tile.scales = form.scales;
  tile.table = form.table;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  tile.past_caches = writes_past_caches(args);
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    tile.panel = w.data + p * tile.layout.bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    multiply_panel(tiles, tile, args.rows, args.side_by_side);
  }
  if (tile.past_caches) _mm_sfence();
}

}  // namespace
}  // namespace braid::kernels::avx2
