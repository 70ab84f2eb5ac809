// Products of 8-bit activations with weights of up to 8 bits by vpdpbusd: one lane for each output, so nothing is summed across lanes.
//
// A tile is kRows rows by kPanels panels: kRows * kPanels integer and as many float accumulators; the weights of a group are loaded
// once for all rows, four activation codes are broadcast once for all panels. For every K block of 32 and (row, panel):
// 8 vpdpbusd, then convert, scale, multiply-add: once, or for each of two parts.
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
  ScaleForm scales;
  bool minimum;
  const std::uint8_t* table;
  float* out;  // of the first row and panel
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  const std::byte* next;    // what this tile prefetches for the next panels, so that memory works while the rows are multiplied:
  std::int64_t next_lines;  // 64-byte lines in each K block
};

// Bits of group g from its plane's vector, moved up by `up` within each byte.
template <int kBits>
[[gnu::always_inline]] inline __m512i plane_bits(__m512i packed, int g, int up) {
  if constexpr (kBits == 8) {
    return packed;
  } else {
    const int shift = g / kBits * kBits - up;
    const __m512i moved = shift > 0   ? _mm512_srli_epi16(packed, static_cast<unsigned>(shift))
                          : shift < 0 ? _mm512_slli_epi16(packed, static_cast<unsigned>(-shift))
                                      : packed;
    return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(((1 << kBits) - 1) << up)));
  }
}

// The codes of group g, from the vector of the plane of low bits that holds it.
template <CodeForm kForm>
[[gnu::always_inline]] inline __m512i group_codes(__m512i low, const std::byte* block, int g, __m512i table) {
  __m512i codes = plane_bits<kForm.low_bits>(low, g, 0);
  if constexpr (kForm.table) codes = _mm512_shuffle_epi8(table, codes);
  if constexpr (kForm.high_bits != 0) {
    const __m512i high = _mm512_load_si512(block + (kForm.low_bits + g % kForm.high_bits) * 64);
    codes = _mm512_or_si512(codes, plane_bits<kForm.high_bits>(high, g, kForm.low_bits));
  }
  return codes;
}

// The integer sums of one part of a K block.
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void sum_part(const Tile& tile, std::int64_t b, int part, __m512i table, __m512i (&sum)[kRows][kPanels]) {
  constexpr int kGroups = 8 / kForm.parts;
  const std::byte* codes = tile.panel + b * tile.layout.block_codes;
  const std::byte* x = tile.x + b * kBlockValues;
  // A lone accumulator would wait for its own latency: odd groups then get a second one.
  constexpr bool kSplit = kRows * kPanels < 4;
  __m512i odd[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      sum[r][p] = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + (b * kForm.parts + part) * 4);
      odd[r][p] = _mm512_setzero_si512();
    }
  }
#pragma GCC unroll 8
  for (int load = 0; load < kForm.low_bits; ++load) {
    __m512i low[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) low[p] = _mm512_load_si512(codes + p * tile.layout.bytes + load * 64);
#pragma GCC unroll 8
    for (int i = load; i < kGroups; i += kForm.low_bits) {
      const int g = part * kGroups + i;
      __m512i weights[kPanels];
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) weights[p] = group_codes<kForm>(low[p], codes + p * tile.layout.bytes, g, table);
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

inline __m512 load_bytes(const std::byte* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}

// The scales of one part, or its minimums: `kind` 0 or 1.
template <int kParts>
[[gnu::always_inline]] inline __m512 load_scales(const Tile& tile, const std::byte* panel, std::int64_t b, int part, int kind) {
  const std::byte* scales = panel + tile.layout.scales + b * tile.layout.block_scales;
  if (tile.scales == ScaleForm::kF16) return load_halves(scales + kind * kPanel * 2);
  if (tile.scales == ScaleForm::kBF16) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  const std::byte* super = panel + tile.layout.supers + b / kSuperBlocks * tile.layout.super_scales + kind * kPanel * 2;
  return _mm512_mul_ps(load_halves(super), load_bytes(scales + (kind * kParts + part) * kPanel));
}

// Adds one part of a K block to the float sums.
template <CodeForm kForm, int kRows, int kPanels>
[[gnu::always_inline]] inline void add_part(const Tile& tile, std::int64_t b, int part, __m512i table, __m512 (&acc)[kRows][kPanels]) {
  __m512i sum[kRows][kPanels];
  sum_part<kForm, kRows, kPanels>(tile, b, part, table, sum);
  __m512 weight_scale[kPanels];
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    weight_scale[p] = load_scales<kForm.parts>(tile, tile.panel + p * tile.layout.bytes, b, part, 0);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + b * 4);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      acc[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r][p]), _mm512_mul_ps(weight_scale[p], scale), acc[r][p]);
    }
  }
  if (!tile.minimum) return;
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    weight_scale[p] = load_scales<kForm.parts>(tile, tile.panel + p * tile.layout.bytes, b, part, 1);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m512 x_sum = broadcast_float(tile.x + r * tile.row.bytes + tile.row.sums + (b * kForm.parts + part) * 4);
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_fmadd_ps(weight_scale[p], x_sum, acc[r][p]);
  }
}

// What a single row will read soon.
template <CodeForm kForm, int kPanels>
[[gnu::always_inline]] inline void prefetch_block(const Tile& tile, std::int64_t b) {
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const std::byte* panel = tile.panel + p * tile.layout.bytes;
    const std::byte* codes = panel + b * tile.layout.block_codes + kPrefetchBytes;
#pragma GCC unroll 8
    for (int line = 0; line < kForm.low_bits + kForm.high_bits; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(codes + line * 64), _MM_HINT_T0);
    }
    const std::byte* scales = panel + tile.layout.scales + b * tile.layout.block_scales;
    _mm_prefetch(reinterpret_cast<const char*>(scales + kPanels * tile.layout.bytes), _MM_HINT_T0);
  }
}

template <CodeForm kForm, int kRows, int kPanels>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m512i table = _mm512_setzero_si512();
  if constexpr (kForm.table) table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tile.table)));
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_setzero_ps();
  }
  for (std::int64_t b = 0; b < tile.blocks; ++b) {
    if constexpr (kRows == 1) prefetch_block<kForm, kPanels>(tile, b);
    for (std::int64_t line = b * tile.next_lines; kRows > 1 && line < (b + 1) * tile.next_lines; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(tile.next + line * 64), _MM_HINT_T1);
    }
    add_part<kForm, kRows, kPanels>(tile, b, 0, table, acc);
    if constexpr (kForm.parts == 2) add_part<kForm, kRows, kPanels>(tile, b, 1, table, acc);
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
using Tiles = Multiply[kMostRows][kMostPanels];

// [rows - 1][panels - 1]
template <CodeForm kForm>
constexpr Tiles kTiles = {
    {multiply<kForm, 1, 1>, multiply<kForm, 1, 2>}, {multiply<kForm, 2, 1>, multiply<kForm, 2, 2>},
    {multiply<kForm, 3, 1>, multiply<kForm, 3, 2>}, {multiply<kForm, 4, 1>, multiply<kForm, 4, 2>},
    {multiply<kForm, 5, 1>, multiply<kForm, 5, 2>}, {multiply<kForm, 6, 1>, multiply<kForm, 6, 2>},
};

const Tiles& tiles_of(const CodeForm& form) {
  switch (form.low_bits * 4 + form.high_bits) {
    case 8 * 4:
      return kTiles<kCodes8>;
    case 4 * 4:
      return form.table ? kTiles<kCodes4Table> : kTiles<kCodes4>;
    case 4 * 4 + 1:
      return kTiles<kCodes5>;
    case 4 * 4 + 2:
      return kTiles<kCodes6>;
    case 2 * 4:
      return kTiles<kCodes2>;
    default:
      return kTiles<kCodes3>;
  }
}

// All rows times `panels` panels, the rows in tiles of nearly equal height.
void multiply_panels(const Tiles& tiles, Tile tile, std::int64_t rows, std::int64_t panels) {
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
  const BlockForm& form = *block_form(w.type);
  const Tiles& tiles = tiles_of(form.codes);
  // One row reads its panels one after the other, as memory likes best.
  const std::int64_t width = kMostPanels;
  Tile tile{};
  tile.layout = panel_layout(w.type, w.inputs);
  tile.row = prepared_layout(w.type, w.inputs);
  tile.x = args.prepared;
  tile.blocks = w.inputs / kBlockValues;
  tile.scales = form.scales;
  tile.minimum = form.minimum;
  tile.table = form.table;
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
