// Products of 8-bit activations with weights of up to 8 bits, exactly, four inputs of four outputs at a time:
//   i8mm      usdot takes unsigned codes, so sums start where the activations say, which makes up for the codes' bias
//   dotprod   sdot takes signed ones: 8-bit codes, stored or from a table, lose their bias first; smaller ones are signed already
//   neon      smull to 16 bits, then pairs to 32
// A tile is kRows rows by one panel of four vectors: all of them side by side for few rows, else in two turns, so that sums and what is
// added to them stay in the 32 registers.
#pragma once

#include "kernels/cache_hints.h"
#include "kernels/neon/tier.h"
#include "kernels/neon/weight_codes.h"
#include "kernels/numerics.h"

namespace braid::kernels::neon {
namespace {

#ifdef __ARM_FEATURE_MATMUL_INT8
constexpr bool kUnsigned = true;
#else
constexpr bool kUnsigned = false;
#endif

// Codes lose their bias before they are multiplied.
template <CodeForm kForm>
constexpr bool kSigned = !kUnsigned && (kForm.low_bits == 8 || kForm.table);

[[gnu::always_inline]] inline int32x4_t add_fours(int32x4_t sum, uint8x16_t codes, int8x16_t x) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  return vusdotq_s32(sum, codes, x);
#elif defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sum, vreinterpretq_s8_u8(codes), x);
#else
  const int8x16_t weights = vreinterpretq_s8_u8(codes);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(weights), vget_low_s8(x)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(weights, x));
  return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
}

constexpr int kMostRows = 4;
constexpr int kVectors = kPanel / 4;

template <int kRows>
constexpr int kWidth = kRows <= 2 ? kVectors : kVectors / 2;  // vectors side by side

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
  NextLines next;          // the next panel, so that memory works while rows are multiplied: a turn with each K block
  std::int64_t next_turn;  // of the first block

  const std::byte* row_at(int r) const { return x + r * row.bytes; }
};

// Of rows times vectors of outputs.
template <int kRows>
using IntegerSums = int32x4_t[kRows][kWidth<kRows>];
template <int kRows>
using FloatSums = float32x4_t[kRows][kWidth<kRows>];

// Adds one part of a K block to integer sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_products(const Tile& tile, const std::byte* codes, std::int64_t b, int part, int first,
                                                uint8x16_t table, IntegerSums<kRows>& sums) {
  constexpr int kGroups = 8 / kForm.parts;
  const std::byte* x = tile.x + b * kBlockValues;
#pragma GCC unroll 8
  for (int g = part * kGroups; g < (part + 1) * kGroups; ++g) {
    int8x16_t fours[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) fours[r] = vreinterpretq_s8_s32(vdupq_n_s32(int_at(x + r * tile.row.bytes + g * 4)));
#pragma GCC unroll 4
    for (int i = 0; i < kWidth<kRows>; ++i) {
      uint8x16_t weights = group_codes<kForm>(codes, g, first + i, table);
      if constexpr (kSigned<kForm>) weights = veorq_u8(weights, vdupq_n_u8(0x80));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r][i] = add_fours(sums[r][i], weights, fours[r]);
    }
  }
}

// Sums that begin with `none`, or with the int32 `index` of the rows' starts where codes keep their bias.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void start(const Tile& tile, std::int64_t index, std::int32_t none, IntegerSums<kRows>& sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const int32x4_t value = vdupq_n_s32(kSigned<kForm> ? none : int_at(tile.row_at(r) + tile.row.starts + index * 4));
#pragma GCC unroll 4
    for (int i = 0; i < kWidth<kRows>; ++i) sums[r][i] = value;
  }
}

// Summing::kBlock: adds a K block to the float sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_block(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b, int first,
                                             uint8x16_t table, FloatSums<kRows>& acc) {
  IntegerSums<kRows> sums;
  start<kForm, kRows>(tile, b, kRoundMagicBits, sums);
  add_products<kForm, kRows>(tile, codes, b, 0, first, table, sums);
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kRows>; ++i) {
    const float32x4_t scale = load_scales(tile.scales, scales, 0, first + i);
    const float32x4_t magic = vmulq_n_f32(scale, -kRoundMagic);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const std::byte* row = tile.row_at(r);
      const float32x4_t scaled = vfmaq_f32(magic, vreinterpretq_f32_s32(sums[r][i]), scale);
      acc[r][i] = vfmaq_n_f32(acc[r][i], scaled, float_at(row + tile.row.scales + b * 4));
      if constexpr (kForm.minimums) {
        const float32x4_t minimum = load_scales(tile.scales, scales, 1, first + i);
        acc[r][i] = vfmaq_n_f32(acc[r][i], minimum, float_at(row + tile.row.sums + b * 4));
      }
    }
  }
}

// Summing::kParts: adds one part of a K block, times its scale, to a group's integer sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_part(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b, int part,
                                            int first, uint8x16_t table, IntegerSums<kRows>& total) {
  IntegerSums<kRows> sums;
  start<kForm, kRows>(tile, b * kForm.parts + part, 0, sums);
  add_products<kForm, kRows>(tile, codes, b, part, first, table, sums);
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kRows>; ++i) {
    const int32x4_t by = load_subs<kForm.parts>(tile.layout, scales, part, 0, first + i);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) total[r][i] = vmlaq_s32(total[r][i], sums[r][i], by);
  }
}

// Adds what the minimums of the group [begin, end) make, in vector `i` of the tile.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_minimums(const Tile& tile, std::int64_t begin, std::int64_t end, int first, int i,
                                                FloatSums<kRows>& acc) {
  int32x4_t total[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) total[r] = vdupq_n_s32(0);
  const std::byte* scales = scales_at(tile.layout, tile.panel, begin);
  for (std::int64_t b = begin; b < end; ++b, scales += tile.layout.block_scales) {
    for (int part = 0; part < kForm.parts; ++part) {
      const int32x4_t minimum = load_subs<kForm.parts>(tile.layout, scales, part, 1, first + i);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        std::int16_t sum;
        __builtin_memcpy(&sum, tile.row_at(r) + tile.row.sums + (b * kForm.parts + part) * 2, sizeof(sum));
        total[r] = vmlaq_n_s32(total[r], minimum, sum);
      }
    }
  }
  const float32x4_t super = load_supers(group_at(tile.layout, tile.panel, begin), 1, first + i);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const float scale = float_at(tile.row_at(r) + tile.row.scales + begin / blocks_of_group(kForm) * 4);
    acc[r][i] = vfmaq_f32(acc[r][i], vcvtq_f32_s32(total[r]), vmulq_n_f32(super, scale));
  }
}

// Adds the group of K blocks [begin, end) to the float sums.
template <CodeForm kForm, int kRows>
[[gnu::always_inline]] inline void add_group(const Tile& tile, std::int64_t begin, std::int64_t end, int first, uint8x16_t table,
                                             FloatSums<kRows>& acc) {
  const std::byte* codes = codes_at(tile.layout, tile.panel, begin);
  const std::byte* scales = scales_at(tile.layout, tile.panel, begin);
  IntegerSums<kRows> total;
  if constexpr (kForm.summing == Summing::kGroup) start<kForm, kRows>(tile, begin / kWideGroupBlocks, 0, total);
  if constexpr (kForm.summing == Summing::kParts) {
    for (auto& row : total) {
      for (int32x4_t& sum : row) sum = vdupq_n_s32(0);
    }
  }
  for (std::int64_t b = begin; b < end; ++b, codes += tile.layout.block_codes, scales += tile.layout.block_scales) {
    if (first == 0) tile.next.fetch<kSecondLevel>(tile.next_turn + b);
    if constexpr (kForm.summing == Summing::kBlock) {
      add_block<kForm, kRows>(tile, codes, scales, b, first, table, acc);
    } else if constexpr (kForm.summing == Summing::kGroup) {
      add_products<kForm, kRows>(tile, codes, b, 0, first, table, total);
    } else {
      add_part<kForm, kRows>(tile, codes, scales, b, 0, first, table, total);
      if constexpr (kForm.parts == 2) add_part<kForm, kRows>(tile, codes, scales, b, 1, first, table, total);
    }
  }
  if constexpr (kForm.summing == Summing::kBlock) return;
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kRows>; ++i) {
    const float32x4_t super = load_supers(group_at(tile.layout, tile.panel, begin), 0, first + i);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const float scale = float_at(tile.row_at(r) + tile.row.scales + begin / blocks_of_group(kForm) * 4);
      acc[r][i] = vfmaq_f32(acc[r][i], vcvtq_f32_s32(total[r][i]), vmulq_n_f32(super, scale));
    }
    if constexpr (kForm.minimums) add_minimums<kForm, kRows>(tile, begin, end, first, i, acc);
  }
}

template <CodeForm kForm, int kRows>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  uint8x16_t table = vdupq_n_u8(0);
  if constexpr (kForm.table) table = vld1q_u8(tile.table);
  constexpr int kPasses = kVectors / kWidth<kRows>;
  FloatSums<kRows> acc[kPasses];
  for (FloatSums<kRows>& pass : acc) {
    for (auto& row : pass) {
      for (float32x4_t& sum : row) sum = vdupq_n_f32(0.0F);
    }
  }
  // Group by group, so that the second pass finds its codes, which lie beside those of the first, in the first-level cache.
  for (std::int64_t begin = 0; begin < tile.blocks; begin = group_end(kForm, begin, tile.blocks)) {
    for (int pass = 0; pass < kPasses; ++pass)
      add_group<kForm, kRows>(tile, begin, group_end(kForm, begin, tile.blocks), pass * kWidth<kRows>, table, acc[pass]);
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int r = 0; r < kRows; ++r)
      store_outputs(tile.out + r * tile.out_stride + v * 4, tile.outputs - v * 4, tile.accumulate,
                    acc[v / kWidth<kRows>][r][v % kWidth<kRows>]);
  }
}

using Multiply = void (*)(const Tile&);
using Tiles = Multiply[kMostRows];

// [rows - 1]
template <CodeForm kForm>
constexpr Tiles kTiles = {multiply<kForm, 1>, multiply<kForm, 2>, multiply<kForm, 3>, multiply<kForm, 4>};

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
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    tile.panel = w.data + p * tile.layout.bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    multiply_panel(tiles, tile, args.rows, args.side_by_side);
  }
}

}  // namespace
}  // namespace braid::kernels::neon
