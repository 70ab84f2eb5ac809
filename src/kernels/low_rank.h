// What a low-rank product (adapters) takes: sums over the rows of a narrow or a flat matrix, one column as independent of the others as of
// threads, so that tiers and batches give the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Columns come in whole groups, padded with zeros: of 16 floats, a vector of the widest tier.
inline constexpr std::int64_t kColumnGroup = 16;

constexpr std::int64_t whole_column_groups(std::int64_t columns) { return (columns + kColumnGroup - 1) / kColumnGroup * kColumnGroup; }

// out[i][c - begin] = sum_r x[i][r] * weights[r, c], for each i below `count` and columns [begin, end), which are whole groups: rows may lie one
// after the other, or groups of their columns, so that what some columns read is read in order. Rows r of one
// remainder by 4 are a chain of fused multiply-adds in their order; the four are added as (0 + 1) + (2 + 3). So a sum has the same bits
// beside others, with which it shares the loads of weights.
inline constexpr std::int64_t kMostSums = 4;
struct ColumnSumsArgs {
  std::array<const float*, kMostSums> x = {};  // [rows] each
  const std::byte* weights = nullptr;          // float32 or, with `half`, bf16
  bool half = false;
  std::int64_t rows = 0;
  std::int64_t stride = 0;                   // values from a row to the next, whole groups
  std::int64_t group_stride = kColumnGroup;  // and from a group of columns to the next
  std::array<float*, kMostSums> out = {};
  std::int64_t count = 1;
  const std::byte* next = nullptr;  // what is read after that, laid out alike: fetched meanwhile; null: nobody knows
};

}  // namespace braid::kernels
