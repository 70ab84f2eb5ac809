// Products of float activations with F32, F16 and BF16 weights: one lane and one chain of multiply-adds for each output. A tile is
// kRows rows by kPanels panels, so that enough chains run side by side to hide their latency. Limit with many rows: the
// multiply-add itself; 92% of its peak measured on Zen 4 with 32 rows.
#include "kernels/avx512/simd.h"
#include "kernels/avx512/tier.h"
#include "kernels/cache_hints.h"
#include "kernels/float_type.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx512 {
namespace {

constexpr int kMostRows = 6;
constexpr int kMostPanels = 4;
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
inline __m512 load_weights(const std::byte* from) {
  if constexpr (kType == WeightType::kF32) return _mm512_loadu_ps(from);
  if constexpr (kType == WeightType::kF16) return load_halves(from);
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
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
  for (std::int64_t k = 0; k < tile.inputs; ++k) {
    __m512 weights[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* from = tile.panel + p * tile.panel_bytes + k * kInputBytes<kType>;
      weights[p] = load_weights<kType>(from);
      if (kRows == 1) _mm_prefetch(reinterpret_cast<const char*>(from + kPrefetchBytes), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 x = broadcast_float(tile.x + r * tile.row_bytes + k * 4);
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) acc[r][p] = _mm512_fmadd_ps(weights[p], x, acc[r][p]);
    }
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

template <WeightType kType, int kRows>
constexpr Multiply multiply_of(std::int64_t panels) {
  return panels == 4 ? multiply<kType, kRows, 4> : panels >= 2 ? multiply<kType, kRows, 2> : multiply<kType, kRows, 1>;
}

template <WeightType kType>
Multiply find(std::int64_t rows, std::int64_t panels) {
  switch (rows) {
    case 1:
      return multiply_of<kType, 1>(panels);
    case 2:
      return multiply_of<kType, 2>(panels);
    case 3:
      return multiply_of<kType, 3>(panels);
    case 4:
      return multiply_of<kType, 4>(panels);
    case 5:
      return multiply_of<kType, 5>(panels);
    default:
      return multiply_of<kType, 6>(panels);
  }
}

// All rows times `panels` panels, the rows in tiles of nearly equal height.
template <WeightType kType>
void multiply_panels(Tile tile, std::int64_t rows, std::int64_t panels) {
  std::int64_t count = (rows + kMostRows - 1) / kMostRows;
  for (; count > 0; --count) {
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
    const std::int64_t left = panel_end - p;
    const std::int64_t panels = left >= kMostPanels ? kMostPanels : left >= 2 ? 2 : 1;
    tile.panel = w.data + p * tile.panel_bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    with_float_type(w.type, [&]<WeightType kType>() { multiply_panels<kType>(tile, args.rows, panels); });
    p += panels;
  }
  if (tile.past_caches) _mm_sfence();
}

}  // namespace braid::kernels::avx512
