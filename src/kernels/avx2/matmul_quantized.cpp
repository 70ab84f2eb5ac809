// Products of 8-bit activations with 8- and 4-bit weights by vpmaddubsw, exactly:
//   Q8_0  two products of unsigned 8-bit codes overflow 16 bits, so the sign moves from the weight to the activation: |w| * (x sign
//   w),
//         at most 2 * 128 * 127, then vpmaddwd to 32 bits
//   Q4_0  eight groups of 2 * 15 * 127 fit 16 bits, so a whole K block is summed there and widened once
// A tile is kRows rows by one panel of two vectors.
#include <kernels/avx2/simd.h>
#include <kernels/avx2/tier.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx2 {
namespace {

constexpr int kMostRows = 4;
constexpr std::int64_t kPrefetchBytes = 4096;  // ahead of a single row, which runs at the speed of memory

struct Tile {
  const std::byte* panel;
  PanelLayout layout;
  const std::byte* x;  // kRows prepared rows
  PreparedLayout row;
  std::int64_t blocks;
  float* out;  // of the first row
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
};

inline __m256i load(const std::byte* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }

template <int kRows>
[[gnu::always_inline]] inline void sum_block_q8_0(const Tile& tile, std::int64_t b, __m256i (&sum)[kRows][2]) {
  const std::byte* codes = tile.panel + b * tile.layout.block_codes;
  const std::byte* x = tile.x + b * kBlockValues;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i flip = _mm256_set1_epi8(-128);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
    if (kRows == 1) _mm_prefetch(reinterpret_cast<const char*>(codes + g * 64 + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i weight = _mm256_xor_si256(load(codes + g * 64 + half * 32), flip);
      const __m256i size = _mm256_abs_epi8(weight);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i four = broadcast_int(x + r * tile.row.bytes + g * 4);
        const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(four, weight));
        sum[r][half] = _mm256_add_epi32(sum[r][half], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
}

template <int kRows>
[[gnu::always_inline]] inline void sum_block_q4_0(const Tile& tile, std::int64_t b, __m256i (&sum)[kRows][2]) {
  const std::byte* codes = tile.panel + b * tile.layout.block_codes;
  const std::byte* x = tile.x + b * kBlockValues;
  const __m256i nibble = _mm256_set1_epi8(15);
  __m256i pairs[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) pairs[r][0] = pairs[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    if (kRows == 1) _mm_prefetch(reinterpret_cast<const char*>(codes + g * 64 + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256i packed = load(codes + g * 64 + half * 32);
      const __m256i low = _mm256_and_si256(packed, nibble);
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const std::byte* codes_x = x + r * tile.row.bytes + g * 4;
        const __m256i first = _mm256_maddubs_epi16(low, broadcast_int(codes_x));
        const __m256i second = _mm256_maddubs_epi16(high, broadcast_int(codes_x + 16));
        pairs[r][half] = _mm256_add_epi16(pairs[r][half], _mm256_add_epi16(first, second));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i start = broadcast_int(tile.x + r * tile.row.bytes + tile.row.starts + b * 4);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      sum[r][half] = _mm256_add_epi32(start, _mm256_madd_epi16(pairs[r][half], _mm256_set1_epi16(1)));
    }
  }
}

template <WeightType kType, int kRows>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m256 acc[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
  for (std::int64_t b = 0; b < tile.blocks; ++b) {
    __m256i sum[kRows][2];
    if constexpr (kType == WeightType::kQ8_0) {
      sum_block_q8_0<kRows>(tile, b, sum);
    } else {
      sum_block_q4_0<kRows>(tile, b, sum);
    }
    const std::byte* scales = tile.panel + tile.layout.scales + b * 2 * kPanel;
    const __m256 weight_scale[2] = {load_halves(scales), load_halves(scales + 16)};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 scale = broadcast_float(tile.x + r * tile.row.bytes + tile.row.scales + b * 4);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        acc[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][half]), _mm256_mul_ps(weight_scale[half], scale), acc[r][half]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    store_panel(tile.out + r * tile.out_stride, tile.outputs, tile.accumulate, acc[r][0], acc[r][1]);
  }
}

using Multiply = void (*)(const Tile&);

// [rows - 1]
template <WeightType kType>
constexpr Multiply kTiles[kMostRows] = {multiply<kType, 1>, multiply<kType, 2>, multiply<kType, 3>, multiply<kType, 4>};

// All rows times one panel, the rows in tiles of nearly equal height.
void multiply_panel(const Multiply (&tiles)[kMostRows], Tile tile, std::int64_t rows) {
  for (std::int64_t count = (rows + kMostRows - 1) / kMostRows; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    tiles[height - 1](tile);
    tile.x += height * tile.row.bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const auto& tiles = w.type == WeightType::kQ8_0 ? kTiles<WeightType::kQ8_0> : kTiles<WeightType::kQ4_0>;
  Tile tile{};
  tile.layout = panel_layout(w.type, w.inputs);
  tile.row = prepared_layout(w.type, w.inputs);
  tile.x = args.prepared;
  tile.blocks = w.inputs / kBlockValues;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    tile.panel = w.data + p * tile.layout.bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    multiply_panel(tiles, tile, args.rows);
  }
}

}  // namespace braid::kernels::avx2
