// What a tile of rows times a panel is, and how its sums lie in vectors. Internal linkage only: each variant of the instruction set has its
// own.
#pragma once

#include "kernels/cache_hints.h"
#include "kernels/neon/simd.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::neon {
namespace {

constexpr int kQuarters = kPanel / 4;

// How a tile's sums lie in vectors: each has four outputs of one row, or, as usmmla makes them, two outputs of two rows,
// [o r, o r', o' r, o' r'].
struct Shape {
  int height;     // vectors one above the other
  int rows_each;  // of a vector
};
template <Shape kShape>
constexpr int kRows = kShape.height* kShape.rows_each;
template <Shape kShape>
constexpr int kSideBySide = kRows<kShape> <= 2 ? kQuarters : kQuarters / 2;  // quarters
template <Shape kShape>
constexpr int kWidth = kSideBySide<kShape>* kShape.rows_each;  // vectors

struct Tile {
  const std::byte* panel;
  PanelLayout layout;
  const std::byte* x;  // prepared rows
  std::int64_t rows;   // from `x` on, of which the tile takes the first
  PreparedLayout row;
  std::int64_t blocks;
  ScaleForm scales;
  const std::uint8_t* table;
  float* out;  // of the first row
  std::int64_t out_stride;
  std::int64_t outputs;  // from `out` to the end of the matrix
  bool accumulate;
  NextLines next;          // the next panel, so that memory works while rows are multiplied: a turn with each K block
  std::int64_t next_turn;  // of the first block
};

// Of rows times outputs.
template <Shape kShape>
using IntegerSums = int32x4_t[kShape.height][kWidth<kShape>];
template <Shape kShape>
using FloatSums = float32x4_t[kShape.height][kWidth<kShape>];

// What lies `offset` bytes from the begin of a prepared row, for the rows of vector `r`: two rows have everything side by side.
template <Shape kShape>
[[gnu::always_inline]] inline const std::byte* rows_at(const Tile& tile, int r, std::int64_t offset) {
  return tile.x + (r * tile.row.bytes + offset) * kShape.rows_each;
}

// An integer of each row that vector `r` has, once for each output.
template <Shape kShape, class Number>
[[gnu::always_inline]] inline int32x4_t of_rows(const Tile& tile, int r, std::int64_t offset) {
  Number numbers[kShape.rows_each];
  __builtin_memcpy(numbers, rows_at<kShape>(tile, r, offset), sizeof(numbers));
  if constexpr (kShape.rows_each == 1) {
    return vdupq_n_s32(numbers[0]);
  } else if constexpr (sizeof(Number) == 2) {
    return vmovl_s16(vreinterpret_s16_s32(vdup_n_s32(__builtin_bit_cast(std::int32_t, numbers))));
  } else {
    return vreinterpretq_s32_s64(vdupq_n_s64(__builtin_bit_cast(std::int64_t, numbers)));
  }
}

template <Shape kShape>
[[gnu::always_inline]] inline float32x4_t floats_of_rows(const Tile& tile, int r, std::int64_t offset) {
  return vreinterpretq_f32_s32(of_rows<kShape, std::int32_t>(tile, r, offset));
}

// What vector `i` has of the four numbers of its quarter: once for each row.
template <Shape kShape>
[[gnu::always_inline]] inline int32x4_t of_outputs(int32x4_t four, int i) {
  if constexpr (kShape.rows_each == 1) return four;
  return i % 2 == 0 ? vzip1q_s32(four, four) : vzip2q_s32(four, four);
}

template <Shape kShape>
[[gnu::always_inline]] inline float32x4_t floats_of_outputs(float32x4_t four, int i) {
  return vreinterpretq_f32_s32(of_outputs<kShape>(vreinterpretq_s32_f32(four), i));
}

}  // namespace
}  // namespace braid::kernels::neon
