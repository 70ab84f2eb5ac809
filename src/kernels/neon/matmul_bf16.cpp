// Products of bf16 activations with BF16 weights. bfdot adds two inputs of four outputs to the sums of a row, bfmmla twice two inputs of two
// outputs to the sums of two rows. Arm defines both by the same arithmetic, so that a row's bits do not depend on which of them it was:
//   y = odd(y + odd(x[k] * w[k] + x[k + 1] * w[k + 1])), k = 0, 2, ...
// odd() rounds to odd: what is no float becomes the nearer one to zero with its last bit set. Subnormal numbers are taken for zeros.
//
// Error: activations round to 8 significant bits, half to even (a relative 2^-9 each); BF16 weights are exact.
//
// A tile is up to three rows by a panel, or two to four pairs of rows by half a panel, so that 16 sums stay in registers while each vector of
// weights, which two instructions put in order, serves all pairs.
#include "kernels/neon/simd.h"
#include "kernels/neon/tier.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::neon {
namespace {

constexpr std::int64_t kStep = 4;           // inputs of one bfmmla
constexpr std::int64_t kChunkInputs = 256;  // of a panel, 8 KB: both halves find it in the first-level cache
constexpr int kVectors = kPanel / 4;
constexpr int kMostRows = 3;  // that are multiplied one by one
constexpr int kLeastPairs = 2;
constexpr int kMostPairs = 4;

struct Tile {
  const std::byte* panel;
  const std::byte* x;  // prepared rows
  std::int64_t rows;   // from `x` on, of which the tile takes the first
  std::int64_t row_bytes;
  std::int64_t inputs;
  float* out;  // of the first row
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
};

bfloat16x8_t as_bf16(uint16x8_t bits) { return vreinterpretq_bf16_u16(bits); }

// Of eight outputs, inputs k to k + 3; zeros behind the last one.
template <bool kWhole>
[[gnu::always_inline]] inline void load_inputs(const Tile& tile, std::int64_t k, int half, uint16x8_t (&inputs)[kStep]) {
#pragma GCC unroll 4
  for (int i = 0; i < kStep; ++i) {
    const auto* at = reinterpret_cast<const std::uint16_t*>(tile.panel + ((k + i) * kPanel + half * 8) * 2);
    inputs[i] = kWhole || k + i < tile.inputs ? vld1q_u16(at) : vdupq_n_u16(0);
  }
}

template <bool kWhole, int kRows>
[[gnu::always_inline]] inline void add_step(const Tile& tile, std::int64_t k, float32x4_t (&acc)[kRows][kVectors]) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    uint16x8_t inputs[kStep];
    load_inputs<kWhole>(tile, k, half, inputs);
#pragma GCC unroll 2
    for (int i = 0; i < kStep; i += 2) {
      const bfloat16x8_t low = as_bf16(vzip1q_u16(inputs[i], inputs[i + 1]));
      const bfloat16x8_t high = as_bf16(vzip2q_u16(inputs[i], inputs[i + 1]));
#pragma GCC unroll 3
      for (int r = 0; r < kRows; ++r) {
        const bfloat16x8_t x = vreinterpretq_bf16_s32(vdupq_n_s32(int_at(tile.x + r * tile.row_bytes + (k + i) * 2)));
        acc[r][half * 2] = vbfdotq_f32(acc[r][half * 2], low, x);
        acc[r][half * 2 + 1] = vbfdotq_f32(acc[r][half * 2 + 1], high, x);
      }
    }
  }
}

template <int kRows>
void multiply_rows(const Tile& tile) {
  float32x4_t acc[kRows][kVectors];
  for (auto& row : acc) {
    for (float32x4_t& sum : row) sum = vdupq_n_f32(0.0F);
  }
  std::int64_t k = 0;
  for (; k + kStep <= tile.inputs; k += kStep) add_step<true, kRows>(tile, k, acc);
  if (k < tile.inputs) add_step<false, kRows>(tile, k, acc);
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      store_outputs(tile.out + r * tile.out_stride + v * 4, tile.outputs - v * 4, tile.accumulate, acc[r][v]);
  }
}

// Sums of two outputs of two rows each, [o r, o r', o' r, o' r'], for half a panel.
template <int kPairs>
using PairSums = float32x4_t[kPairs][kVectors];

// Two rows' four activations from k on. Of an odd number of rows the last one stands twice.
template <int kPairs>
[[gnu::always_inline]] inline bfloat16x8_t load_pair(const Tile& tile, int pair, std::int64_t k) {
  const auto row = [&](std::int64_t r) { return vld1_u16(reinterpret_cast<const std::uint16_t*>(tile.x + r * tile.row_bytes + k * 2)); };
  const bool alone = pair == kPairs - 1 && tile.rows < 2 * kPairs;
  return as_bf16(vcombine_u16(row(2 * pair), row(alone ? 2 * pair : 2 * pair + 1)));
}

template <bool kWhole, int kPairs>
[[gnu::always_inline]] inline void add_pairs_step(const Tile& tile, std::int64_t k, int half, PairSums<kPairs>& acc) {
  uint16x8_t inputs[kStep];
  load_inputs<kWhole>(tile, k, half, inputs);
  bfloat16x8_t x[kPairs];
#pragma GCC unroll 4
  for (int p = 0; p < kPairs; ++p) x[p] = load_pair<kPairs>(tile, p, k);
  const auto multiply = [&](int v, uint32x4_t weights) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) acc[p][v] = vbfmmlaq_f32(acc[p][v], vreinterpretq_bf16_u32(weights), x[p]);
  };
  // Two inputs of four outputs side by side, then four of two.
  const uint32x4_t first_low = vreinterpretq_u32_u16(vzip1q_u16(inputs[0], inputs[1]));
  const uint32x4_t second_low = vreinterpretq_u32_u16(vzip1q_u16(inputs[2], inputs[3]));
  multiply(0, vzip1q_u32(first_low, second_low));
  multiply(1, vzip2q_u32(first_low, second_low));
  const uint32x4_t first_high = vreinterpretq_u32_u16(vzip2q_u16(inputs[0], inputs[1]));
  const uint32x4_t second_high = vreinterpretq_u32_u16(vzip2q_u16(inputs[2], inputs[3]));
  multiply(2, vzip1q_u32(first_high, second_high));
  multiply(3, vzip2q_u32(first_high, second_high));
}

// Inputs [begin, end) of half a panel; the last ones may be fewer than a step.
template <int kPairs>
void add_chunk(const Tile& tile, std::int64_t begin, std::int64_t end, int half, PairSums<kPairs>& sums) {
  PairSums<kPairs> acc;  // in registers
  for (int p = 0; p < kPairs; ++p) {
    for (int v = 0; v < kVectors; ++v) acc[p][v] = sums[p][v];
  }
  std::int64_t k = begin;
  for (; k + kStep <= end; k += kStep) add_pairs_step<true, kPairs>(tile, k, half, acc);
  if (k < end) add_pairs_step<false, kPairs>(tile, k, half, acc);
  for (int p = 0; p < kPairs; ++p) {
    for (int v = 0; v < kVectors; ++v) sums[p][v] = acc[p][v];
  }
}

template <int kPairs>
void multiply_pairs(const Tile& tile) {
  PairSums<kPairs> sums[2];
  for (PairSums<kPairs>& half : sums) {
    for (auto& pair : half) {
      for (float32x4_t& sum : pair) sum = vdupq_n_f32(0.0F);
    }
  }
  for (std::int64_t begin = 0; begin < tile.inputs; begin += kChunkInputs) {
    const std::int64_t end = begin + kChunkInputs < tile.inputs ? begin + kChunkInputs : tile.inputs;
    for (int half = 0; half < 2; ++half) add_chunk<kPairs>(tile, begin, end, half, sums[half]);
  }
  for (int p = 0; p < kPairs; ++p) {
    for (int quarter = 0; quarter < kVectors; ++quarter) {
      const float32x4_t low = sums[quarter / 2][p][quarter % 2 * 2];
      const float32x4_t high = sums[quarter / 2][p][quarter % 2 * 2 + 1];
      float* out = tile.out + 2 * p * tile.out_stride + quarter * 4;
      store_outputs(out, tile.outputs - quarter * 4, tile.accumulate, vuzp1q_f32(low, high));
      if (2 * p + 1 >= tile.rows) continue;
      store_outputs(out + tile.out_stride, tile.outputs - quarter * 4, tile.accumulate, vuzp2q_f32(low, high));
    }
  }
}

using Multiply = void (*)(const Tile&);
constexpr Multiply kOfRows[kMostRows] = {multiply_rows<1>, multiply_rows<2>, multiply_rows<3>};  // [rows - 1]
constexpr Multiply kOfPairs[kMostPairs - kLeastPairs + 1] = {multiply_pairs<2>, multiply_pairs<3>,
                                                             multiply_pairs<4>};  // [pairs - kLeastPairs]

void multiply_panel(Tile tile) {
  if (tile.rows <= kMostRows) return kOfRows[tile.rows - 1](tile);
  std::int64_t left = (tile.rows + 1) / 2;
  for (std::int64_t count = (left + kMostPairs - 1) / kMostPairs; count > 0; --count) {
    const std::int64_t pairs = (left + count - 1) / count;
    kOfPairs[pairs - kLeastPairs](tile);
    tile.x += 2 * pairs * tile.row_bytes;
    tile.out += 2 * pairs * tile.out_stride;
    tile.rows -= 2 * pairs;
    left -= pairs;
  }
}

}  // namespace

std::size_t bf16_row_bytes(std::int64_t inputs) noexcept {
  const std::int64_t lines = (inputs + 31) / 32;
  return static_cast<std::size_t>((lines | 1) * 64);
}

void prepare_bf16_rows(const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs, std::byte* prepared) noexcept {
  const auto row_bytes = static_cast<std::int64_t>(bf16_row_bytes(inputs));
  prepared += rows.begin * row_bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride, prepared += row_bytes) {
    const auto store = [&](std::int64_t k, float32x4_t values) {
      vst1_bf16(reinterpret_cast<bfloat16_t*>(prepared + k * 2), vcvt_bf16_f32(values));
    };
    std::int64_t k = 0;
    for (; k + kStep <= inputs; k += kStep) store(k, vld1q_f32(x + k));
    if (k == inputs) continue;
    float rest[kStep] = {};
    __builtin_memcpy(rest, x + k, static_cast<std::size_t>(inputs - k) * sizeof(float));
    store(k, vld1q_f32(rest));
  }
}

void matmul_bf16(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  if (args.rows == 0) return;
  const PackedMatrix& w = *args.weights;
  const std::int64_t panel_bytes = panel_layout(w.type, w.inputs).bytes;
  Tile tile{};
  tile.x = args.prepared;
  tile.rows = args.rows;
  tile.row_bytes = static_cast<std::int64_t>(bf16_row_bytes(w.inputs));
  tile.inputs = w.inputs;
  tile.out_stride = args.out_stride;
  tile.accumulate = args.accumulate;
  for (std::int64_t p = panel_begin; p < panel_end; ++p) {
    tile.panel = w.data + p * panel_bytes;
    tile.out = args.out + p * kPanel;
    tile.outputs = w.outputs - p * kPanel;
    multiply_panel(tile);
  }
}

}  // namespace braid::kernels::neon
