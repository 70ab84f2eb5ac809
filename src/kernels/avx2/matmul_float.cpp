// Products of float activations with F32, F16 and BF16 weights: one lane and one chain of multiply-adds for each output. A tile is
// kRows rows by kPanels panels of two vectors, at least 8 chains where the matrix has them.
#include "kernels/avx2/simd.h"
#include "kernels/avx2/tier.h"
#include "kernels/cache_hints.h"
#include "kernels/float_type.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx2 {
namespace {

constexpr int kMostRows = 6;
constexpr std::int64_t kPrefetchBytes = 2048;

struct Tile {
  const std::byte* panel;  // kPanels adjacent ones
  std::int64_t panel_bytes;
  const std::byte* x;  // kRows prepared rows
  std::int64_t row_bytes;
  std::int64_t inputs;
  float* out;  // of the first row and panel
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  bool past_caches;
};

template <WeightType kType>
constexpr std::int64_t kInputBytes = kType == WeightType::kF32 ? 64 : 32;

template <WeightType kType>
inline __m256 load_weights(const std::byte* from) {
  if constexpr (kType == WeightType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  if constexpr (kType == WeightType::kF16) return load_halves(from);
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

template <WeightType kType, int kRows, int kPanels>
void multiply(const Tile& given) {
  const Tile tile = given;  // a copy whose fields stay in registers
  __m256 acc[kRows][kPanels * 2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kPanels * 2; ++v) acc[r][v] = _mm256_setzero_ps();
  }
  for (std::int64_t k = 0; k < tile.inputs; ++k) {
    __m256 weights[kPanels * 2];
#pragma GCC unroll 8
    for (int v = 0; v < kPanels * 2; ++v) {
      const std::byte* from = tile.panel + v / 2 * tile.panel_bytes + k * kInputBytes<kType> + v % 2 * kInputBytes<kType> / 2;
      weights[v] = load_weights<kType>(from);
      if (kRows == 1 && v % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(from + kPrefetchBytes), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256 x = broadcast_float(tile.x + r * tile.row_bytes + k * 4);
#pragma GCC unroll 8
      for (int v = 0; v < kPanels * 2; ++v) acc[r][v] = _mm256_fmadd_ps(weights[v], x, acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < 2 * kPanels; ++i) {
      store_outputs(tile.out + r * tile.out_stride + i * 8, tile.outputs - i * 8, tile.accumulate, tile.past_caches, acc[r][i]);
    }
  }
}

using Multiply = void (*)(const Tile&);

template <WeightType kType>
Multiply find(std::int64_t rows, std::int64_t panels) {
  switch (rows) {
    case 1:
      return panels == 4 ? multiply<kType, 1, 4> : panels == 2 ? multiply<kType, 1, 2> : multiply<kType, 1, 1>;
    case 2:
      return panels == 2 ? multiply<kType, 2, 2> : multiply<kType, 2, 1>;
    case 3:
      return panels == 2 ? multiply<kType, 3, 2> : multiply<kType, 3, 1>;
    case 4:
      return multiply<kType, 4, 1>;
    case 5:
      return multiply<kType, 5, 1>;
    default:
      return multiply<kType, 6, 1>;
  }
}

// Panels that go together with that many rows.
std::int64_t panels_for(std::int64_t rows, std::int64_t left) {
  if (rows == 1 && left >= 4) return 4;
  return rows <= 3 && left >= 2 ? 2 : 1;
}

// All rows times `panels` panels, the rows in tiles of nearly equal height.
template <WeightType kType>
void multiply_panels(Tile tile, std::int64_t rows, std::int64_t panels) {
  for (std::int64_t count = (rows + kMostRows - 1) / kMostRows; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    find<kType>(height, panels)(tile);
    tile.x += height * tile.row_bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

}  // namespace

void matmul_float(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  Tile tile{};
  tile.panel_bytes = panel_layout(w.type, w.inputs).bytes;
  tile.x = args.prepared;
  tile.row_bytes = prepared_layout(w.type, w.inputs).bytes;
  tile.inputs = w.inputs;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  tile.past_caches = writes_past_caches(args);
  for (std::int64_t p = panel_begin; p < panel_end;) {
    const std::int64_t panels = panels_for(args.rows, panel_end - p);
    tile.panel = w.data + p * tile.panel_bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    with_float_type(w.type, [&]<WeightType kType>() { multiply_panels<kType>(tile, args.rows, panels); });
    p += panels;
  }
  if (tile.past_caches) _mm_sfence();
}

}  // namespace braid::kernels::avx2
