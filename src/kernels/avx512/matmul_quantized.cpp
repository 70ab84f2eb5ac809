// Products of 8-bit activations with weights of up to 8 bits by vpdpbusd: one lane for each output, so nothing is summed across lanes.
//
// A tile is kRows rows by kPanels panels: kRows * kPanels accumulators of a part's sum, and as many floats, or integers of a group; the
// weights of a group of codes are loaded once for all rows, four activation codes are broadcast once for all panels. For every K block of 32
// and (row, panel): 8 vpdpbusd, then two fma, or for each part vpmulld and an addition.
//
// Limits. Many rows: what follows the products goes through the pipes of vpdpbusd (perf/README.md has the share). One row: the reading of
// memory.
#include "kernels/avx512/many_rows.h"
#include "kernels/avx512/weight_codes.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::avx512 {
namespace {

constexpr int kMostRows = 6;
constexpr int kPanelsOfRows = 2;  // of several rows, always: a lone one comes once in a matrix, and code of its own would be a third of all
constexpr int kMostPanelsOfOneRow = 4;
constexpr std::int64_t kMostPrefetched = 256 << 10;  // of the next panels
// Ahead of a single row, which runs at the speed of memory, in each of the panels that it reads at a time.
template <int kPanels>
constexpr std::int64_t kAheadBytes = kPanels == 1 ? 4096 : 2048;

struct Tile {
  const std::byte* panel;     // kPanels adjacent ones
  std::int64_t panel_stride;  // 0: a lone one that several rows multiply twice, with `outputs` for one
  PanelLayout layout;
  const std::byte* x;  // kRows prepared rows
  PreparedLayout row;
  std::int64_t blocks;
  ScaleForm scales;
  const std::uint8_t* table;
  float* out;  // of the first row and panel
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  bool past_caches;
  NextLines next;          // panels, so that memory works while several rows are multiplied: a turn with each K block
  std::int64_t next_turn;  // of the first block
};

// The starts of the sums of one part of a K block, or of a group.
template <int kRows, int kPanels>
[[gnu::always_inline]] inline void load_starts(const Tile& tile, std::int64_t index, __m512i (&sum)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512i start = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + index * 4);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) sum[r][p] = start;
  }
}

// Adds one part of a K block to `sum`.
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void sum_part(const Tile& tile, const std::byte* codes, std::int64_t b, int part, __m512i table,
                                            __m512i (&sum)[kRows][kPanels]) {
  constexpr int kGroups = 8 / kForm.parts;
  const std::byte* x = tile.x + b * kBlockValues;
  // A lone accumulator would wait for its own latency: odd groups then get a second one.
  constexpr bool kSplit = kRows * kPanels < 4;
  __m512i odd[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) odd[r][p] = _mm512_setzero_si512();
  }
#pragma GCC unroll 8
  for (int load = 0; load < kForm.low_bits; ++load) {
    __m512i low[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) low[p] = _mm512_load_si512(codes + p * tile.panel_stride + load * 64);
#pragma GCC unroll 8
    for (int i = load; i < kGroups; i += kForm.low_bits) {
      const int g = part * kGroups + i;
      __m512i weights[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) weights[p] = group_codes<kForm>(low[p], codes + p * tile.panel_stride, g, table);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i four = broadcast_int(x + r * tile.row.bytes + g * 4);
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p) {
          __m512i& into = kSplit && g % 2 == 1 ? odd[r][p] : sum[r][p];
          into = _mm512_dpbusd_epi32(into, weights[p], four);
        }
      }
    }
  }
  if constexpr (kSplit) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) sum[r][p] = _mm512_add_epi32(sum[r][p], odd[r][p]);
    }
  }
}

// Adds one part of a K block to the integer sums of its group (Summing::kParts).
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void add_part(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b, int part,
                                            __m512i table, __m512i (&total)[kRows][kPanels]) {
  __m512i sum[kRows][kPanels];
  load_starts<kRows, kPanels>(tile, b * kForm.parts + part, sum);
  sum_part<kForm, kRows, kPanels>(tile, codes, b, part, table, sum);
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const __m512i multipliers = load_subs<kForm.parts>(tile.layout, scales + p * tile.panel_stride, part, 0);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) total[r][p] = _mm512_add_epi32(total[r][p], _mm512_mullo_epi32(multipliers, sum[r][p]));
  }
}

// Adds a K block, whose weights and rows have scales of their own (Summing::kBlock), to the float sums.
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void add_block(const Tile& tile, const std::byte* codes, const std::byte* scales, std::int64_t b,
                                             __m512i table, __m512 (&acc)[kRows][kPanels]) {
  __m512i sum[kRows][kPanels];
  load_starts<kRows, kPanels>(tile, b, sum);
  sum_part<kForm, kRows, kPanels>(tile, codes, b, 0, table, sum);
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p, scales += tile.panel_stride) {
    const __m512 scale = load_scales(tile.scales, scales, 0);
    const __m512 magic = _mm512_mul_ps(scale, _mm512_set1_ps(-kRoundMagic));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 x_scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + b * 4);
      acc[r][p] = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_castsi512_ps(sum[r][p]), scale, magic), x_scale, acc[r][p]);
    }
    if constexpr (kForm.minimums) {
      const __m512 minimum = load_scales(tile.scales, scales, 1);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        acc[r][p] = _mm512_fmadd_ps(minimum, broadcast_float(tile.x + r * tile.row.bytes + tile.row.sums + b * 4), acc[r][p]);
    }
  }
}

// Adds the minimums of the group that begins at block `begin` to one panel's float sums.
template <int kParts, int kRows>
inline void add_minimums(const Tile& tile, const std::byte* panel, std::int64_t begin, __m512* acc, std::int64_t acc_stride) {
  constexpr int kPairs = kGroupBlocks * kParts / 2;
  const __m512 minimum = load_supers(group_at(tile.layout, panel, begin), 1);
  __m512i pairs[kPairs];
#pragma GCC unroll 8
  for (int pair = 0; pair < kPairs; ++pair) pairs[pair] = load_minimum_pair<kParts>(tile.layout, panel, begin, pair);
  for (int r = 0; r < kRows; ++r) {
    const std::byte* row = tile.x + r * tile.row.bytes;
    __m512i total = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int pair = 0; pair < kPairs; ++pair) {
      total = _mm512_dpwssd_epi32(total, pairs[pair], broadcast_int(row + tile.row.sums + begin * kParts * 2 + pair * 4));
    }
    const __m512 scale = _mm512_mul_ps(minimum, broadcast_float(row + tile.row.scales + begin / kGroupBlocks * 4));
    acc[r * acc_stride] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), scale, acc[r * acc_stride]);
  }
}

// What a single row will read soon, `lines` of what lies as far ahead as `from` lies in its panel; beyond the panels that follow them.
template <int kPanels>
[[gnu::always_inline]] inline void prefetch_ahead(const Tile& tile, const std::byte* from, std::int64_t lines) {
  from += kAheadBytes<kPanels>;
  if (from - tile.panel >= tile.layout.bytes) from += (kPanels - 1) * tile.layout.bytes;
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) prefetch_lines<kFirstLevel>(from + p * tile.panel_stride, lines);
}

// Fetches what the tile's results will be added to.
template <int kRows, int kPanels>
[[gnu::always_inline]] inline void prefetch_results(const Tile& tile) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) prefetch_for_write(tile.out + r * tile.out_stride + p * kPanel);
  }
}

// Adds the integer sums of the group that begins at block `begin` to the float sums.
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void add_total(const Tile& tile, std::int64_t begin, const __m512i (&total)[kRows][kPanels],
                                             __m512 (&acc)[kRows][kPanels]) {
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const std::byte* const panel = tile.panel + p * tile.panel_stride;
    const __m512 super = load_supers(group_at(tile.layout, panel, begin), 0);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 x_scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + begin / blocks_of_group(kForm) * 4);
      acc[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total[r][p]), _mm512_mul_ps(super, x_scale), acc[r][p]);
    }
    if constexpr (kForm.minimums) add_minimums<kForm.parts, kRows>(tile, panel, begin, &acc[0][p], kPanels);
  }
}

// Adds the group of K blocks [begin, end) to the float sums.
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void add_group(const Tile& tile, std::int64_t begin, std::int64_t end, __m512i table,
                                             __m512 (&acc)[kRows][kPanels]) {
  __m512i total[kRows][kPanels];
  if constexpr (kForm.summing == Summing::kGroup) load_starts<kRows, kPanels>(tile, begin / kWideGroupBlocks, total);
  if constexpr (kForm.summing == Summing::kParts) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) total[r][p] = _mm512_setzero_si512();
    }
  }
  const std::byte* codes = codes_at(tile.layout, tile.panel, begin);
  if constexpr (kRows == 1) prefetch_ahead<kPanels>(tile, group_at(tile.layout, tile.panel, begin), tile.layout.codes / 64);
  const std::byte* scales = scales_at(tile.layout, tile.panel, begin);
  for (std::int64_t b = begin; b < end; ++b, codes += tile.layout.block_codes, scales += tile.layout.block_scales) {
    if constexpr (kRows == 1)
      prefetch_ahead<kPanels>(tile, codes, kForm.low_bits + kForm.high_bits);
    else
      tile.next.fetch<kFirstLevel>(tile.next_turn + b);
    if constexpr (kForm.summing == Summing::kBlock) {
      add_block<kForm, kRows, kPanels>(tile, codes, scales, b, table, acc);
    } else if constexpr (kForm.summing == Summing::kGroup) {
      sum_part<kForm, kRows, kPanels>(tile, codes, b, 0, table, total);
    } else {
      for (int part = 0; part < kForm.parts; ++part) add_part<kForm, kRows, kPanels>(tile, codes, scales, b, part, table, total);
    }
  }
  if constexpr (kForm.summing != Summing::kBlock) add_total<kForm, kRows, kPanels>(tile, begin, total, acc);
}

template <CodeForm kForm, int kRows, int kPanels>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m512i table = _mm512_setzero_si512();
  if constexpr (kForm.table) table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile.table)));
  if (kRows > 1 && tile.accumulate) prefetch_results<kRows, kPanels>(tile);
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_setzero_ps();
  }
  for (std::int64_t begin = 0; begin < tile.blocks; begin = group_end(kForm, begin, tile.blocks)) {
    add_group<kForm, kRows, kPanels>(tile, begin, group_end(kForm, begin, tile.blocks), table, acc);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      store_panel(tile.out + r * tile.out_stride + p * kPanel, tile.outputs - p * kPanel, tile.accumulate, tile.past_caches, acc[r][p]);
    }
  }
}

using Multiply = void (*)(const Tile&);

struct Tiles {
  Multiply one_row[kMostPanelsOfOneRow];  // [panels - 1]
  Multiply rows[kMostRows - 1];           // [rows - 2]

  Multiply of(std::int64_t height, std::int64_t panels) const { return height == 1 ? one_row[panels - 1] : rows[height - 2]; }
};

template <CodeForm kForm>
constexpr Tiles kTiles = {{multiply<kForm, 1, 1>, multiply<kForm, 1, 2>, multiply<kForm, 1, 3>, multiply<kForm, 1, 4>},
                          {multiply<kForm, 2, kPanelsOfRows>, multiply<kForm, 3, kPanelsOfRows>, multiply<kForm, 4, kPanelsOfRows>,
                           multiply<kForm, 5, kPanelsOfRows>, multiply<kForm, 6, kPanelsOfRows>}};

// All rows times `panels` panels, the rows in tiles of nearly equal height.
void multiply_panels(const Tiles& tiles, Tile tile, std::int64_t rows, std::int64_t panels, bool side_by_side) {
  std::int64_t count = (rows + kMostRows - 1) / kMostRows;
  const std::int64_t bytes = panels * tile.layout.bytes;
  tile.next = bytes > kMostPrefetched ? NextLines() : NextLines(tile.panel + bytes, bytes, tile.blocks * count, side_by_side);
  tile.next_turn = 0;
  for (; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    tiles.of(height, panels)(tile);
    tile.next_turn += tile.blocks;
    tile.x += height * tile.row.bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  if (args.rows == 0) return;
  if (takes_many_rows(args.rows)) return matmul_many_rows(args, panel_begin, panel_end);
  const PackedMatrix& w = *args.weights;
  const BlockForm& form = *block_form(w.type);
  const Tiles& tiles = *with_form(form.codes, []<CodeForm kForm>() { return &kTiles<kForm>; });
  const std::int64_t width = args.rows > 1 ? kPanelsOfRows : args.side_by_side ? kMostPanelsOfOneRow : 1;
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
  for (std::int64_t p = panel_begin; p < panel_end; p += width) {
    const std::int64_t panels = panel_end - p < width ? panel_end - p : width;
    const bool is_lone = args.rows > 1 && panels == 1;
    tile.panel = w.data + p * tile.layout.bytes;
    tile.panel_stride = is_lone ? 0 : tile.layout.bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    if (is_lone && tile.outputs > kPanel) tile.outputs = kPanel;
    multiply_panels(tiles, tile, args.rows, panels, args.side_by_side);
  }
  if (tile.past_caches) _mm_sfence();
}

}  // namespace braid::kernels::avx512
