// Products of 8-bit activations with 8- and 4-bit weights by vpdpbusd: one lane for each output, so nothing is summed across lanes.
//
// A tile is kRows rows by kPanels panels: kRows * kPanels integer and as many float accumulators; the weights of a group are loaded
// once for all rows, four activation codes are broadcast once for all panels. For every K block of 32 and (row, panel):
// 8 vpdpbusd, then convert, scale, multiply-add.
//
// Limits. Many rows: the multiply and the multiply-add go through the pipes of vpdpbusd, so 8 of 10 slots are products: 80% of the
// instruction's peak; 72% measured on Zen 4 with 32 and 512 rows (perf/README.md). One row: the reading of memory, 95% of it for
// Q8_0 and 90% for Q4_0 on one core.
#include <kernels/avx512/simd.h>
#include <kernels/avx512/tier.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx512 {
namespace {

constexpr int kMostRows = 6;
constexpr int kMostPanels = 2;
constexpr std::int64_t kMostPrefetched = 256 << 10;  // of the next panels, into the second-level cache
constexpr std::int64_t kPrefetchBytes = 2048;        // ahead of a single row, which runs at the speed of memory

struct Tile {
  const std::byte* panel;  // kPanels adjacent ones
  PanelLayout layout;
  const std::byte* x;  // kRows prepared rows
  PreparedLayout row;
  std::int64_t blocks;
  float* out;  // of the first row and panel
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  const std::byte* next;    // what this tile prefetches for the next panels, so that memory works while the rows are multiplied:
  std::int64_t next_lines;  // 64-byte lines in each K block
};

// The codes of groups g and g + kGroups / 2 that 64 packed bytes hold.
template <WeightType kType>
struct Codes;

template <>
struct Codes<WeightType::kQ8_0> {
  static constexpr int kLoads = 8;
  static constexpr int kGroupsPerLoad = 1;
  static __m512i group(__m512i packed, int) { return packed; }
};

template <>
struct Codes<WeightType::kQ4_0> {
  static constexpr int kLoads = 4;
  static constexpr int kGroupsPerLoad = 2;
  static __m512i group(__m512i packed, int half) {
    return _mm512_and_si512(half == 0 ? packed : _mm512_srli_epi16(packed, 4), _mm512_set1_epi8(15));
  }
};

// The integer sums of one K block.
template <WeightType kType, int kRows, int kPanels>
[[gnu::always_inline]] inline void sum_block(const Tile& tile, std::int64_t b, __m512i (&sum)[kRows][kPanels]) {
  using Group = Codes<kType>;
  const std::byte* codes = tile.panel + b * tile.layout.block_codes;
  const std::byte* x = tile.x + b * kBlockValues;
  // A lone accumulator would wait for its own latency: odd groups then get a second one.
  constexpr bool kSplit = kRows * kPanels < 4;
  __m512i odd[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      sum[r][p] = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + b * 4);
      odd[r][p] = _mm512_setzero_si512();
    }
  }
#pragma GCC unroll 8
  for (int load = 0; load < Group::kLoads; ++load) {
    __m512i packed[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* from = codes + p * tile.layout.bytes + load * 64;
      packed[p] = _mm512_load_si512(from);
      if (kRows == 1) _mm_prefetch(reinterpret_cast<const char*>(from + kPrefetchBytes), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int half = 0; half < Group::kGroupsPerLoad; ++half) {
      const int g = load + half * Group::kLoads;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512i four = broadcast_int(x + r * tile.row.bytes + g * 4);
#pragma GCC unroll 8
        for (int p = 0; p < kPanels; ++p) {
          __m512i& into = kSplit && g % 2 == 1 ? odd[r][p] : sum[r][p];
          into = _mm512_dpbusd_epi32(into, Group::group(packed[p], half), four);
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

template <WeightType kType, int kRows, int kPanels>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_setzero_ps();
  }
  for (std::int64_t b = 0; b < tile.blocks; ++b) {
    __m512i sum[kRows][kPanels];
    sum_block<kType, kRows, kPanels>(tile, b, sum);
    for (std::int64_t line = b * tile.next_lines; kRows > 1 && line < (b + 1) * tile.next_lines; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(tile.next + line * 64), _MM_HINT_T1);
    }
    __m512 weight_scale[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* scales = tile.panel + p * tile.layout.bytes + tile.layout.scales + b * 2 * kPanel;
      weight_scale[p] = load_halves(scales);
      if (kRows == 1) _mm_prefetch(reinterpret_cast<const char*>(scales + kPanels * tile.layout.bytes), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + b * 4);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        acc[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][p]), _mm512_mul_ps(weight_scale[p], scale), acc[r][p]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      float* out = tile.out + r * tile.out_stride + p * kPanel;
      const __mmask16 mask = first_lanes(tile.outputs - p * kPanel);
      const __m512 before = tile.accumulate ? _mm512_maskz_loadu_ps(mask, out) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(out, mask, tile.accumulate ? _mm512_add_ps(before, acc[r][p]) : acc[r][p]);
    }
  }
}

using Multiply = void (*)(const Tile&);

// [rows - 1][panels - 1]
template <WeightType kType>
constexpr Multiply kTiles[kMostRows][kMostPanels] = {
    {multiply<kType, 1, 1>, multiply<kType, 1, 2>}, {multiply<kType, 2, 1>, multiply<kType, 2, 2>},
    {multiply<kType, 3, 1>, multiply<kType, 3, 2>}, {multiply<kType, 4, 1>, multiply<kType, 4, 2>},
    {multiply<kType, 5, 1>, multiply<kType, 5, 2>}, {multiply<kType, 6, 1>, multiply<kType, 6, 2>},
};

// All rows times `panels` panels, the rows in tiles of nearly equal height.
void multiply_panels(const Multiply (&tiles)[kMostRows][kMostPanels], Tile tile, std::int64_t rows, std::int64_t panels) {
  std::int64_t count = (rows + kMostRows - 1) / kMostRows;
  const std::int64_t bytes = panels * tile.layout.bytes;
  tile.next = tile.panel + bytes;
  tile.next_lines = bytes > kMostPrefetched ? 0 : (bytes + 64 * tile.blocks * count - 1) / (64 * tile.blocks * count);
  for (; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    tiles[height - 1][panels - 1](tile);
    tile.next += tile.next_lines * tile.blocks * 64;
    tile.x += height * tile.row.bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  if (args.rows == 0) return;
  const PackedMatrix& w = *args.weights;
  const auto& tiles = w.type == WeightType::kQ8_0 ? kTiles<WeightType::kQ8_0> : kTiles<WeightType::kQ4_0>;
  // One row reads its panels one after the other, as memory likes best.
  const std::int64_t width = kMostPanels;
  Tile tile{};
  tile.layout = panel_layout(w.type, w.inputs);
  tile.row = prepared_layout(w.type, w.inputs);
  tile.x = args.prepared;
  tile.blocks = w.inputs / kBlockValues;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  for (std::int64_t p = panel_begin; p < panel_end; p += width) {
    tile.panel = w.data + p * tile.layout.bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    multiply_panels(tiles, tile, args.rows, panel_end - p < width ? panel_end - p : width);
  }
}

}  // namespace braid::kernels::avx512
