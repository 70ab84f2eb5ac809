// Products of 8-bit activations with weights of up to 8 bits, exactly:
//   i8mm      usdot multiplies four inputs of four outputs with those of a row, and where there are several rows usmmla eight inputs of two
//             outputs with those of two rows. Both take unsigned codes, so sums start where the activations say, which makes up for the
//             codes' bias
//   dotprod   sdot takes signed ones: 8-bit codes, stored or from a table, lose their bias first; smaller ones are signed already
//   neon      smull to 16 bits, then pairs to 32
// A tile is some rows by one panel of four vectors, quarters: all of them side by side for few rows, else in two turns, so that integer
// sums stay in the 32 registers.
#pragma once

#include "kernels/neon/paired_rows.h"
#include "kernels/neon/quantized_tile.h"
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

#ifdef __ARM_FEATURE_MATMUL_INT8
// Eight inputs of two outputs, and of two rows.
[[gnu::always_inline]] inline int32x4_t add_eights(int32x4_t sum, uint8x16_t codes, int8x16_t x) { return vusmmlaq_s32(sum, codes, x); }
#endif

// Adds the products of group g of a K block, whose activations begin at byte `at` of a row, to integer sums of the quarters from `first` on.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void multiply_fours(const Tile& tile, const std::byte* codes, std::int64_t at, int g, int first,
                                                  uint8x16_t table, IntegerSums<kShape>& sums) {
  int8x16_t fours[kShape.height];
#pragma GCC unroll 4
  for (int r = 0; r < kShape.height; ++r) fours[r] = vreinterpretq_s8_s32(of_rows<kShape, std::int32_t>(tile, r, at + g * 4));
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kShape>; ++i) {
    uint8x16_t weights = group_codes<kForm>(codes, g, first + i, table);
    if constexpr (kSigned<kForm>) weights = veorq_u8(weights, vdupq_n_u8(0x80));
#pragma GCC unroll 4
    for (int r = 0; r < kShape.height; ++r) sums[r][i] = add_fours(sums[r][i], weights, fours[r]);
  }
}

// The same of groups g and g + 1 for pairs of rows: the four inputs that an output has in each are put side by side.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void multiply_eights(const Tile& tile, const std::byte* codes, std::int64_t at, int g, int first,
                                                   uint8x16_t table, IntegerSums<kShape>& sums) {
  int8x16_t eights[kShape.height];
#pragma GCC unroll 4
  for (int r = 0; r < kShape.height; ++r) eights[r] = vreinterpretq_s8_u8(vld1q_u8(bytes_at(rows_at<kShape>(tile, r, at + g * 4))));
#pragma GCC unroll 2
  for (int quarter = 0; quarter < kSideBySide<kShape>; ++quarter) {
    const uint32x4_t low = vreinterpretq_u32_u8(group_codes<kForm>(codes, g, first + quarter, table));
    const uint32x4_t high = vreinterpretq_u32_u8(group_codes<kForm>(codes, g + 1, first + quarter, table));
    const uint8x16_t outputs[2] = {vreinterpretq_u8_u32(vzip1q_u32(low, high)), vreinterpretq_u8_u32(vzip2q_u32(low, high))};
#pragma GCC unroll 4
    for (int r = 0; r < kShape.height; ++r) {
      sums[r][2 * quarter] = add_eights(sums[r][2 * quarter], outputs[0], eights[r]);
      sums[r][2 * quarter + 1] = add_eights(sums[r][2 * quarter + 1], outputs[1], eights[r]);
    }
  }
}

// Adds one part of a K block to integer sums.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void add_products(const Tile& tile, const std::byte* codes, std::int64_t b, int part, int first,
                                                uint8x16_t table, IntegerSums<kShape>& sums) {
  constexpr int kGroups = 8 / kForm.parts;
  constexpr int kAtOnce = kShape.rows_each;
#pragma GCC unroll 8
  for (int g = part * kGroups; g < (part + 1) * kGroups; g += kAtOnce) {
    if constexpr (kShape.rows_each == 2) {
      multiply_eights<kForm, kShape>(tile, codes, b * kBlockValues, g, first, table, sums);
    } else {
      multiply_fours<kForm, kShape>(tile, codes, b * kBlockValues, g, first, table, sums);
    }
  }
}

// Sums that begin with `none`, or with the int32 `index` of the rows' starts where codes keep their bias.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void start(const Tile& tile, std::int64_t index, std::int32_t none, IntegerSums<kShape>& sums) {
#pragma GCC unroll 4
  for (int r = 0; r < kShape.height; ++r) {
    const int32x4_t value = kSigned<kForm> ? vdupq_n_s32(none) : of_rows<kShape, std::int32_t>(tile, r, tile.row.starts + index * 4);
#pragma GCC unroll 4
    for (int i = 0; i < kWidth<kShape>; ++i) sums[r][i] = value;
  }
}

// Summing::kBlock: adds a K block to the float sums.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void add_block(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b, int first,
                                             uint8x16_t table, FloatSums<kShape>& acc) {
  IntegerSums<kShape> sums;
  start<kForm, kShape>(tile, b, kRoundMagicBits, sums);
  add_products<kForm, kShape>(tile, codes, b, 0, first, table, sums);
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kShape>; ++i) {
    const int quarter = first + i / kShape.rows_each;
    const float32x4_t scale = floats_of_outputs<kShape>(load_scales(tile.scales, scales, 0, quarter), i);
    const float32x4_t magic = vmulq_n_f32(scale, -kRoundMagic);
#pragma GCC unroll 4
    for (int r = 0; r < kShape.height; ++r) {
      const float32x4_t scaled = vfmaq_f32(magic, vreinterpretq_f32_s32(sums[r][i]), scale);
      acc[r][i] = vfmaq_f32(acc[r][i], scaled, floats_of_rows<kShape>(tile, r, tile.row.scales + b * 4));
      if constexpr (kForm.minimums) {
        const float32x4_t minimum = floats_of_outputs<kShape>(load_scales(tile.scales, scales, 1, quarter), i);
        acc[r][i] = vfmaq_f32(acc[r][i], minimum, floats_of_rows<kShape>(tile, r, tile.row.sums + b * 4));
      }
    }
  }
}

// Summing::kParts: adds one part of a K block, times its scale, to a group's integer sums.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void add_part(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b, int part,
                                            int first, uint8x16_t table, IntegerSums<kShape>& total) {
  IntegerSums<kShape> sums;
  start<kForm, kShape>(tile, b * kForm.parts + part, 0, sums);
  add_products<kForm, kShape>(tile, codes, b, part, first, table, sums);
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kShape>; ++i) {
    const int32x4_t four = load_subs<kForm.parts>(tile.layout, scales, part, 0, first + i / kShape.rows_each);
    const int32x4_t by = of_outputs<kShape>(four, i);
#pragma GCC unroll 4
    for (int r = 0; r < kShape.height; ++r) total[r][i] = vmlaq_s32(total[r][i], sums[r][i], by);
  }
}

// Adds what the minimums of the group [begin, end) make, in vector `i` of the tile.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void add_minimums(const Tile& tile, std::int64_t begin, std::int64_t end, int first, int i,
                                                FloatSums<kShape>& acc) {
  const int quarter = first + i / kShape.rows_each;
  int32x4_t total[kShape.height];
#pragma GCC unroll 4
  for (int r = 0; r < kShape.height; ++r) total[r] = vdupq_n_s32(0);
  const std::byte* scales = scales_at(tile.layout, tile.panel, begin);
  for (std::int64_t b = begin; b < end; ++b, scales += tile.layout.block_scales) {
    for (int part = 0; part < kForm.parts; ++part) {
      const int32x4_t minimum = of_outputs<kShape>(load_subs<kForm.parts>(tile.layout, scales, part, 1, quarter), i);
#pragma GCC unroll 4
      for (int r = 0; r < kShape.height; ++r) {
        const std::int64_t sum = tile.row.sums + (b * kForm.parts + part) * 2;
        total[r] = vmlaq_s32(total[r], minimum, of_rows<kShape, std::int16_t>(tile, r, sum));
      }
    }
  }
  const float32x4_t super = floats_of_outputs<kShape>(load_supers(group_at(tile.layout, tile.panel, begin), 1, quarter), i);
#pragma GCC unroll 4
  for (int r = 0; r < kShape.height; ++r) {
    const float32x4_t scale = floats_of_rows<kShape>(tile, r, tile.row.scales + begin / blocks_of_group(kForm) * 4);
    acc[r][i] = vfmaq_f32(acc[r][i], vcvtq_f32_s32(total[r]), vmulq_f32(super, scale));
  }
}

// Adds the group of K blocks [begin, end) to the float sums.
template <CodeForm kForm, Shape kShape>
[[gnu::always_inline]] inline void add_group(const Tile& tile, std::int64_t begin, std::int64_t end, int first, uint8x16_t table,
                                             FloatSums<kShape>& acc) {
  const std::byte* codes = codes_at(tile.layout, tile.panel, begin);
  const std::byte* scales = scales_at(tile.layout, tile.panel, begin);
  IntegerSums<kShape> total;
  if constexpr (kForm.summing == Summing::kGroup) start<kForm, kShape>(tile, begin / kWideGroupBlocks, 0, total);
  if constexpr (kForm.summing == Summing::kParts) {
    for (auto& row : total) {
      for (int32x4_t& sum : row) sum = vdupq_n_s32(0);
    }
  }
  for (std::int64_t b = begin; b < end; ++b, codes += tile.layout.block_codes, scales += tile.layout.block_scales) {
    if (first == 0) tile.next.fetch<kSecondLevel>(tile.next_turn + b);
    if constexpr (kForm.summing == Summing::kBlock) {
      add_block<kForm, kShape>(tile, codes, scales, b, first, table, acc);
    } else if constexpr (kForm.summing == Summing::kGroup) {
      add_products<kForm, kShape>(tile, codes, b, 0, first, table, total);
    } else {
      add_part<kForm, kShape>(tile, codes, scales, b, 0, first, table, total);
      if constexpr (kForm.parts == 2) add_part<kForm, kShape>(tile, codes, scales, b, 1, first, table, total);
    }
  }
  if constexpr (kForm.summing == Summing::kBlock) return;
#pragma GCC unroll 4
  for (int i = 0; i < kWidth<kShape>; ++i) {
    const float32x4_t four = load_supers(group_at(tile.layout, tile.panel, begin), 0, first + i / kShape.rows_each);
    const float32x4_t super = floats_of_outputs<kShape>(four, i);
#pragma GCC unroll 4
    for (int r = 0; r < kShape.height; ++r) {
      const float32x4_t scale = floats_of_rows<kShape>(tile, r, tile.row.scales + begin / blocks_of_group(kForm) * 4);
      acc[r][i] = vfmaq_f32(acc[r][i], vcvtq_f32_s32(total[r][i]), vmulq_f32(super, scale));
    }
    if constexpr (kForm.minimums) add_minimums<kForm, kShape>(tile, begin, end, first, i, acc);
  }
}

template <Shape kShape>
[[gnu::always_inline]] inline void store_quarter(const Tile& tile, int quarter, const FloatSums<kShape>& acc) {
  const int i = quarter % kSideBySide<kShape> * kShape.rows_each;
  float* out = tile.out + quarter * 4;
  const auto store = [&](float32x4_t y) {
    store_outputs(out, tile.outputs - quarter * 4, tile.accumulate, y);
    out += tile.out_stride;
  };
  for (int r = 0; r < kShape.height; ++r) {
    if constexpr (kShape.rows_each == 1) {
      store(acc[r][i]);
    } else {
      store(vuzp1q_f32(acc[r][i], acc[r][i + 1]));
      if (2 * r + 1 < tile.rows) store(vuzp2q_f32(acc[r][i], acc[r][i + 1]));
    }
  }
}

template <CodeForm kForm, Shape kShape>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  uint8x16_t table = vdupq_n_u8(0);
  if constexpr (kForm.table) table = vld1q_u8(tile.table);
  FloatSums<kShape> acc[kQuarters / kSideBySide<kShape>];
  for (FloatSums<kShape>& pass : acc) {
    for (auto& row : pass) {
      for (float32x4_t& sum : row) sum = vdupq_n_f32(0.0F);
    }
  }
  // Group by group, so that the second pass finds its codes, which lie beside those of the first, in the first-level cache.
  for (std::int64_t begin = 0; begin < tile.blocks; begin = group_end(kForm, begin, tile.blocks)) {
    for (int first = 0; first < kQuarters; first += kSideBySide<kShape>)
      add_group<kForm, kShape>(tile, begin, group_end(kForm, begin, tile.blocks), first, table, acc[first / kSideBySide<kShape>]);
  }
  for (int quarter = 0; quarter < kQuarters; ++quarter) store_quarter<kShape>(tile, quarter, acc[quarter / kSideBySide<kShape>]);
}

using Multiply = void (*)(const Tile&);

// Tiles of `least` to `most` vectors one above the other, each of `rows_each` rows.
struct Tiles {
  const Multiply* of;  // [height - least]
  std::int64_t least;
  std::int64_t most;
  std::int64_t rows_each;
};

template <CodeForm kForm>
constexpr Multiply kOfRows[] = {multiply<kForm, Shape{1, 1}>, multiply<kForm, Shape{2, 1}>, multiply<kForm, Shape{3, 1}>,
                                multiply<kForm, Shape{4, 1}>};
#ifdef __ARM_FEATURE_MATMUL_INT8
template <CodeForm kForm>
constexpr Multiply kOfPairs[] = {multiply<kForm, Shape{2, 2}>, multiply<kForm, Shape{3, 2}>, multiply<kForm, Shape{4, 2}>};
#endif

Tiles tiles_for(const CodeForm& form, [[maybe_unused]] bool pairs) {
#ifdef __ARM_FEATURE_MATMUL_INT8
  if (pairs) return with_form(form, []<CodeForm kForm>() { return Tiles{kOfPairs<kForm>, 2, 4, 2}; });
#endif
  return with_form(form, []<CodeForm kForm>() { return Tiles{kOfRows<kForm>, 1, 4, 1}; });
}

// All rows times one panel in tiles of nearly equal height.
void multiply_panel(const Tiles& tiles, Tile tile, std::int64_t rows, bool side_by_side) {
  std::int64_t left = (rows + tiles.rows_each - 1) / tiles.rows_each;
  std::int64_t count = (left + tiles.most - 1) / tiles.most;
  tile.next = NextLines(tile.panel + tile.layout.bytes, tile.layout.bytes, tile.blocks * count, side_by_side);
  tile.next_turn = 0;
  for (tile.rows = rows; count > 0; --count) {
    const std::int64_t height = (left + count - 1) / count;
    tiles.of[height - tiles.least](tile);
    tile.next_turn += tile.blocks;
    tile.x += height * tiles.rows_each * tile.row.bytes;
    tile.out += height * tiles.rows_each * tile.out_stride;
    tile.rows -= height * tiles.rows_each;
    left -= height;
  }
}

void multiply_panels(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) {
  if (args.rows == 0) return;
  const PackedMatrix& w = *args.weights;
  const BlockForm& form = *block_form(w.type);
  const Tiles tiles = tiles_for(form.codes, kUnsigned && in_pairs(w.type, args.rows));
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
