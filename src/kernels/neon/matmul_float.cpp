// Products of float activations with F32, F16 and BF16 weights: one lane and one chain of multiply-adds for each output. A tile is kRows
// rows by one panel of four vectors.
#include "kernels/float_type.h"
#include "kernels/neon/simd.h"
#include "kernels/neon/tier.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::neon {
namespace {

constexpr int kMostRows = 5;
constexpr int kVectors = kPanel / 4;

struct Tile {
  const std::byte* panel;
  const std::byte* x;  // kRows prepared rows
  std::int64_t row_bytes;
  std::int64_t inputs;
  float* out;  // of the first row
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
};

template <WeightType kType>
float32x4_t load_weights(const std::byte* input, int v) {
  if constexpr (kType == WeightType::kF32) return vld1q_f32(floats_at(input + v * 16));
  if constexpr (kType == WeightType::kF16) return load_halves(input + v * 8);
  return load_bf16(input + v * 8);
}

template <WeightType kType, int kRows>
void multiply(const Tile& tile) {
  constexpr std::int64_t kInputBytes = kPanel * (kType == WeightType::kF32 ? 4 : 2);
  float32x4_t acc[kRows][kVectors];
  for (auto& row : acc) {
    for (float32x4_t& sum : row) sum = vdupq_n_f32(0.0F);
  }
  for (std::int64_t k = 0; k < tile.inputs; ++k) {
    float32x4_t weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weights[v] = load_weights<kType>(tile.panel + k * kInputBytes, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float x = float_at(tile.x + r * tile.row_bytes + k * 4);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[r][v] = vfmaq_n_f32(acc[r][v], weights[v], x);
    }
  }
  // Unrolled, so that sums are in registers alone.
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      store_outputs(tile.out + r * tile.out_stride + v * 4, tile.outputs - v * 4, tile.accumulate, acc[r][v]);
  }
}

template <WeightType kType>
void multiply_panel(Tile tile, std::int64_t rows) {
  constexpr void (*kTiles[kMostRows])(const Tile&) = {multiply<kType, 1>, multiply<kType, 2>, multiply<kType, 3>, multiply<kType, 4>,
                                                      multiply<kType, 5>};
  for (std::int64_t count = (rows + kMostRows - 1) / kMostRows; count > 0; --count) {
    const std::int64_t height = (rows + count - 1) / count;
    kTiles[height - 1](tile);
    tile.x += height * tile.row_bytes;
    tile.out += height * tile.out_stride;
    rows -= height;
  }
}

}  // namespace

void matmul_float(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  const PackedMatrix& w = *args.weights;
  const std::int64_t panel_bytes = panel_layout(w.type, w.inputs).bytes;
  Tile tile{};
  tile.x = args.prepared;
  tile.row_bytes = prepared_layout(w.type, w.inputs).bytes;
  tile.inputs = w.inputs;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    tile.panel = w.data + p * panel_bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    with_float_type(w.type, [&]<WeightType kType>() { multiply_panel<kType>(tile, args.rows); });
  }
}

}  // namespace braid::kernels::neon
