// Products of 8-bit activations with quantised weights by tiles, for any implementation of the tile instructions.
//
// A weight's code times its part's multiplier fits 16 bits; two tiles hold the bytes: weight = 256 * high + low, high signed, low
// unsigned. So a group of 256 inputs is one integer sum, and only then a float. One tile product is 16 rows by 64 inputs by 16 outputs in
// 16 cycles; a weight takes two of them. Per pair of panels and group, weights are expanded into the first-level cache (16 KB), then
// all rows pass by in pairs of tiles: sums 0 to 3 are (row tile, low or high), so that four loads feed four products. The sums of a
// pair become floats between the products of the next one.
//
// Limit: the products, at half of the instruction's peak (perf/README.md has the share reached).
#pragma once

#include <kernels/amx/row_tiles.h>
#include <kernels/avx512/weight_codes.h>

namespace braid::kernels::amx {

constexpr int kGroupSteps = 4;                       // tiles of 64 inputs
constexpr std::int64_t kMostPrefetched = 512 << 10;  // of the next panels, into the second-level cache

// One group of one panel.
struct ExpandedGroup {
  alignas(64) std::byte low[kGroupSteps * kTileBytes];
  alignas(64) std::byte high[kGroupSteps * kTileBytes];
  __m512 scale;
  __m512 minimum;                     // ScaleForm::kSub
  __m512i minimums[kGroupBlocks];     // pairs of int16 in ScaleForm::kSub, else floats, one vector a block
  int steps;
};

struct QuantizedMatmul {
  BlockForm form;
  PanelLayout layout;
  PreparedLayout row;
  std::int64_t blocks;
  // What is prefetched between products: cache lines from `next` on, `next_lines` at a time.
  const std::byte* next;
  const std::byte* next_end;
  std::int64_t next_lines;
};

// A part's multipliers for the even and for the odd bytes of each output's four codes: magnitudes, where they are negative, and signed.
struct Multipliers {
  __m512i even;
  __m512i odd;
  __mmask64 negative;
  __m512i both;
};

static inline Multipliers spread(__m512i multipliers) {
  const __m512i size = _mm512_abs_epi32(multipliers);
  const __m512i even = _mm512_or_si512(size, _mm512_slli_epi32(size, 16));
  const __m512i low_half = _mm512_and_si512(multipliers, _mm512_set1_epi32(0xFFFF));
  return {even, _mm512_slli_epi16(even, 8), _mm512_movepi8_mask(_mm512_srai_epi32(multipliers, 31)),
          _mm512_or_si512(low_half, _mm512_slli_epi32(low_half, 16))};
}

// Splits the products of 16 * 4 codes and their multipliers into bytes. Negative multipliers negate the codes; -128 has no negative, so
// 8-bit codes then take the longer way.
template <int kBits>
[[gnu::always_inline]] static inline void store_products(__m512i codes, __m512i bias, const Multipliers& by, std::byte* low,
                                                         std::byte* high) {
  const __m512i value = _mm512_sub_epi8(codes, bias);
  __m512i even;
  __m512i odd;
  if (kBits == 8 && by.negative != 0) {
    even = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(value, 8), 8), by.both);
    odd = _mm512_mullo_epi16(_mm512_srai_epi16(value, 8), by.both);
  } else {
    const __m512i signed_value = _mm512_mask_sub_epi8(value, by.negative, bias, codes);
    even = _mm512_maddubs_epi16(by.even, signed_value);
    odd = _mm512_maddubs_epi16(by.odd, signed_value);
  }
  const __m512i byte = _mm512_set1_epi16(0xFF);
  constexpr int kSelect = 0xCA;  // the second where the first has ones, else the third
  _mm512_store_si512(low, _mm512_ternarylogic_epi32(byte, even, _mm512_slli_epi16(odd, 8), kSelect));
  _mm512_store_si512(high, _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(even, 8), odd, kSelect));
}

// Expands one K block into 8 rows of both tiles.
template <CodeForm kForm>
[[gnu::always_inline]] static inline void expand_block(const QuantizedMatmul& m, const std::byte* panel, std::int64_t b, __m512 inverse,
                                                       __m512i table, __m512i bias, std::byte* low, std::byte* high) {
  constexpr int kGroups = 8 / kForm.parts;
  const std::byte* block = panel + b * m.layout.block_codes;
  for (int part = 0; part < kForm.parts; ++part) {
    const Multipliers by = spread(avx512::load_multipliers<kForm.parts>(m.form.scales, m.layout, panel, b, part, inverse));
#pragma GCC unroll 8
    for (int i = 0; i < kGroups; ++i) {
      const int g = part * kGroups + i;
      const __m512i codes = avx512::group_codes<kForm>(_mm512_load_si512(block + g % kForm.low_bits * 64), block, g, table);
      store_products<kForm.low_bits>(codes, bias, by, low + g * 64, high + g * 64);
    }
  }
}

// Expands the group of K blocks [begin, end).
template <CodeForm kForm>
static void expand_group(const QuantizedMatmul& m, const std::byte* panel, std::int64_t begin, std::int64_t end, ExpandedGroup& out) {
  const avx512::GroupScale group = avx512::group_scale(m.form.scales, m.layout, panel, begin, end);
  out.scale = group.scale;
  out.steps = static_cast<int>((end - begin + 1) / 2);
  __m512i table = _mm512_setzero_si512();
  if constexpr (kForm.table) table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(m.form.table)));
  const __m512i bias = _mm512_set1_epi8(static_cast<char>(m.form.bias));
  for (std::int64_t b = begin; b < end; ++b) {
    expand_block<kForm>(m, panel, b, group.inverse, table, bias, out.low + (b - begin) * 512, out.high + (b - begin) * 512);
  }
  for (std::int64_t line = (end - begin) * 8; line < out.steps * kTileRows; ++line) {
    _mm512_store_si512(out.low + line * 64, _mm512_setzero_si512());
    _mm512_store_si512(out.high + line * 64, _mm512_setzero_si512());
  }
  if (!m.form.minimum) return;
  if (m.form.scales == ScaleForm::kSub) {
    out.minimum = avx512::load_supers(m.layout, panel, begin, 1);
    for (int pair = 0; pair < kGroupBlocks * kForm.parts / 2; ++pair) {
      out.minimums[pair] = avx512::load_minimum_pair<kForm.parts>(m.layout, panel, begin, pair);
    }
  } else {
    for (std::int64_t b = begin; b < end; ++b) {
      out.minimums[b - begin] = _mm512_castps_si512(avx512::load_scales(m.form.scales, m.layout, panel, b, 1));
    }
  }
}

using ExpandGroup = void (*)(const QuantizedMatmul& m, const std::byte* panel, std::int64_t begin, std::int64_t end, ExpandedGroup& out);

static inline ExpandGroup expand_group_of(const CodeForm& form) {
  switch (form.low_bits * 4 + form.high_bits) {
    case 8 * 4:
      return expand_group<kCodes8>;
    case 4 * 4:
      return form.table ? expand_group<kCodes4Table> : expand_group<kCodes4>;
    case 4 * 4 + 1:
      return expand_group<kCodes5>;
    case 4 * 4 + 2:
      return expand_group<kCodes6>;
    case 2 * 4:
      return expand_group<kCodes2>;
    default:
      return expand_group<kCodes3>;
  }
}

// A group of one panel times one or two row tiles.
struct TilePair {
  const ExpandedGroup* weights;
  std::int64_t begin;       // K block
  const std::byte* x[2];    // first prepared row of each tile
  float* sums[2];           // [kTileRows][kPanel]
};

// Integer sums of a pair: [row tile][low, high][row][output].
struct IntegerSums {
  alignas(64) std::int32_t sums[2][2][kTileRows][kPanel];
};

[[gnu::always_inline]] static inline __m512 add_minimums(const QuantizedMatmul& m, const ExpandedGroup& weights, const std::byte* row,
                                                         std::int64_t begin, __m512 x_scale, __m512 y) {
  const std::byte* sums = row + m.row.sums;
  if (m.form.scales != ScaleForm::kSub) {
    const std::int64_t count = m.blocks - begin < kGroupBlocks ? m.blocks - begin : kGroupBlocks;
    for (std::int64_t b = 0; b < count; ++b) {
      y = _mm512_fmadd_ps(_mm512_castsi512_ps(weights.minimums[b]), avx512::broadcast_float(sums + (begin + b) * 4), y);
    }
    return y;
  }
  __m512i total = _mm512_setzero_si512();
  const int parts = m.form.codes.parts;
  for (int pair = 0; pair < kGroupBlocks * parts / 2; ++pair) {
    total = _mm512_dpwssd_epi32(total, weights.minimums[pair], avx512::broadcast_int(sums + begin * parts * 2 + pair * 4));
  }
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), _mm512_mul_ps(weights.minimum, x_scale), y);
}

// Adds row r of a pair's tile to the float sums.
template <bool kMinimum>
[[gnu::always_inline]] static inline void add_row(const QuantizedMatmul& m, const ExpandedGroup& weights, const IntegerSums& from, int tile,
                                                  std::int64_t r, const std::byte* row, std::int64_t begin, float* sum) {
  const __m512i low = _mm512_load_si512(from.sums[tile][0][r]);
  const __m512i high = _mm512_load_si512(from.sums[tile][1][r]);
  const __m512 total = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low));
  const __m512 x_scale = avx512::broadcast_float(row + m.row.scales + begin / kGroupBlocks * 4);
  __m512 y = _mm512_fmadd_ps(total, _mm512_mul_ps(weights.scale, x_scale), _mm512_load_ps(sum));
  if constexpr (kMinimum) y = add_minimums(m, weights, row, begin, x_scale, y);
  _mm512_store_ps(sum, y);
}

// A quarter of what follows a pair's products.
template <int kTiles, bool kMinimum>
[[gnu::always_inline]] static inline void add_quarter(const QuantizedMatmul& m, const TilePair& pair, const IntegerSums& from,
                                                      std::int64_t height, int quarter) {
  const ExpandedGroup& weights = *pair.weights;
  const std::int64_t begin = pair.begin;
  for (int tile = 0; tile < kTiles; ++tile) {
    const std::byte* row = pair.x[tile] + quarter * 4 * m.row.bytes;
    float* sum = pair.sums[tile] + quarter * 4 * kPanel;
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i) {
      if (quarter * 4 + i >= height) break;
      add_row<kMinimum>(m, weights, from, tile, quarter * 4 + i, row + i * m.row.bytes, begin, sum + i * kPanel);
    }
  }
}

// Multiplies `pair` while the sums of `before` (null at first) become floats; leaves its integer sums in `to`.
template <int kTiles, bool kMinimum, class Tiles>
static void multiply_pair(QuantizedMatmul& m, Tiles& tiles, const TilePair& pair, const TilePair* before, std::int64_t height,
                          IntegerSums& to) {
  tiles.template zero<0>();
  tiles.template zero<1>();
  if constexpr (kTiles == 2) {
    tiles.template zero<2>();
    tiles.template zero<3>();
  }
  const std::int64_t inputs = pair.begin * kBlockValues;
  for (int step = 0; step < kGroupSteps; ++step) {
    if (step < pair.weights->steps) {
      tiles.template load<4>(pair.x[0] + inputs + step * kTileRowBytes, m.row.bytes);
      tiles.template load<6>(pair.weights->low + step * kTileBytes, kTileRowBytes);
      tiles.template load<7>(pair.weights->high + step * kTileBytes, kTileRowBytes);
      tiles.template multiply_unsigned<0, 4, 6>();
      tiles.template multiply_signed<1, 4, 7>();
      if constexpr (kTiles == 2) {
        tiles.template load<5>(pair.x[1] + inputs + step * kTileRowBytes, m.row.bytes);
        tiles.template multiply_unsigned<2, 5, 6>();
        tiles.template multiply_signed<3, 5, 7>();
      }
    }
    for (std::int64_t line = 0; line < m.next_lines && m.next < m.next_end; ++line, m.next += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(m.next), _MM_HINT_T1);
    }
    if (before != nullptr) add_quarter<kTiles, kMinimum>(m, *before, to, height, step);
  }
  tiles.template store<0>(to.sums[0][0], kTileRowBytes);
  tiles.template store<1>(to.sums[0][1], kTileRowBytes);
  if constexpr (kTiles == 2) {
    tiles.template store<2>(to.sums[1][0], kTileRowBytes);
    tiles.template store<3>(to.sums[1][1], kTileRowBytes);
  }
}

// All pairs of one group: panels side by side, so that activations come from the first-level cache for the second one.
template <int kTiles, bool kMinimum, class Tiles>
static void multiply_tiles(QuantizedMatmul& m, Tiles& tiles, const ExpandedGroup* weights, std::int64_t panels, std::int64_t begin,
                           const std::byte* x, const RowTiles& rows, std::int64_t first_tile, std::int64_t end_tile, BandSums& band) {
  IntegerSums integers;
  TilePair pairs[2];
  const TilePair* before = nullptr;
  int current = 0;
  for (std::int64_t tile = first_tile; tile < end_tile; tile += kTiles) {
    for (std::int64_t p = 0; p < panels; ++p, current ^= 1) {
      TilePair& pair = pairs[current];
      pair.weights = weights + p;
      pair.begin = begin;
      for (int i = 0; i < kTiles; ++i) {
        pair.x[i] = x + rows.first_row(tile + i) * m.row.bytes;
        pair.sums[i] = band.sums[p][tile + i][0];
      }
      multiply_pair<kTiles, kMinimum>(m, tiles, pair, before, rows.height(), integers);
      before = &pair;
    }
  }
  for (int quarter = 0; before != nullptr && quarter < kGroupSteps; ++quarter) {
    add_quarter<kTiles, kMinimum>(m, *before, integers, rows.height(), quarter);
  }
}

// One band of rows times one or two panels.
template <class Tiles>
static void multiply_band(QuantizedMatmul& m, Tiles& tiles, ExpandGroup expand, const std::byte* panel, std::int64_t panels,
                          const std::byte* x, const RowTiles& rows, BandSums& band) {
  ExpandedGroup weights[kPanels];
  const std::int64_t count = rows.count();
  const std::int64_t paired = count / 2 * 2;
  for (std::int64_t p = 0; p < panels; ++p) {
    for (std::int64_t tile = 0; tile < count; ++tile) {
      for (int row = 0; row < kTileRows; ++row) _mm512_store_ps(band.sums[p][tile][row], _mm512_setzero_ps());
    }
  }
  for (std::int64_t begin = 0; begin < m.blocks; begin += kGroupBlocks) {
    const std::int64_t end = begin + kGroupBlocks < m.blocks ? begin + kGroupBlocks : m.blocks;
    for (std::int64_t p = 0; p < panels; ++p) expand(m, panel + p * m.layout.bytes, begin, end, weights[p]);
    if (m.form.minimum) {
      multiply_tiles<2, true>(m, tiles, weights, panels, begin, x, rows, 0, paired, band);
      multiply_tiles<1, true>(m, tiles, weights, panels, begin, x, rows, paired, count, band);
    } else {
      multiply_tiles<2, false>(m, tiles, weights, panels, begin, x, rows, 0, paired, band);
      multiply_tiles<1, false>(m, tiles, weights, panels, begin, x, rows, paired, count, band);
    }
  }
}

template <class Tiles>
static void multiply_quantized(Tiles& tiles, const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) {
  const PackedMatrix& w = *args.weights;
  QuantizedMatmul m{};
  m.form = *block_form(w.type);
  m.layout = panel_layout(w.type, w.inputs);
  m.row = prepared_layout(w.type, w.inputs);
  m.blocks = w.inputs / kBlockValues;
  const ExpandGroup expand = expand_group_of(m.form.codes);
  BandSums band;
  for (std::int64_t row = 0; row < args.rows; row += kBandRows) {
    const RowTiles rows{args.rows - row < kBandRows ? args.rows - row : kBandRows};
    const std::byte* x = args.prepared + row * m.row.bytes;
    tiles.configure(tile_config(rows.height()));
    for (std::int64_t p = panel_begin; p < panel_end; p += kPanels) {
      const std::int64_t panels = panel_end - p < kPanels ? panel_end - p : kPanels;
      const std::int64_t bytes = kPanels * m.layout.bytes;
      const std::int64_t pairs = (m.blocks + kGroupBlocks - 1) / kGroupBlocks * panels * ((rows.count() + 1) / 2);
      m.next = w.data + (p + panels) * m.layout.bytes;
      m.next_end = bytes <= kMostPrefetched && p + panels < w.panels() ? m.next + bytes : m.next;
      m.next_lines = (bytes / 64 + pairs * kGroupSteps - 1) / (pairs * kGroupSteps);
      multiply_band(m, tiles, expand, w.data + p * m.layout.bytes, panels, x, rows, band);
      for (std::int64_t i = 0; i < panels; ++i) {
        write_panel(band.sums[i], rows, args.out + row * args.out_stride + (p + i) * kPanel, args.out_stride,
                    w.outputs - (p + i) * kPanel, args.accumulate);
      }
    }
  }
  tiles.release();
}

}  // namespace braid::kernels::amx
