// Prepared activations of quantised weights as the tiles load them: 16 rows in one piece, so that a tile is 16 cache lines in a row.
// Rows far apart cost half as much time again in a product of 512 rows, and twice as much in one of 32.
//
// A tile of rows takes 16 times the bytes of a prepared row (PreparedLayout) and has its parts in the same order: codes
// [64 inputs][row][64], scales [group][row], of grouped types the starts of sums [group][row], sums [row][what a row has]. Other types'
// starts are left out, because their weights in tiles carry no bias.
// The last tile is as long as the others; its missing rows are never written and never read as results.
#pragma once

#include <kernels/amx/tiles.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::amx {

// Products of fewer rows have their rows one by one, for the AVX-512 tier: weights are then not worth expanding, and vectors keep memory as
// busy as tiles do (perf/README.md).
constexpr std::int64_t kFewestRows = 9;

static inline std::int64_t row_tiles(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

// Byte offsets within one tile of rows.
struct PreparedTiles {
  std::int64_t scales = 0;     // [group][16] floats
  std::int64_t starts = 0;     // [group][16] int32, of grouped types
  std::int64_t sums = 0;       // [16] rows of
  std::int64_t row_sums = 0;   // bytes
  std::int64_t bytes = 0;

  explicit PreparedTiles(const PreparedLayout& row)
      : scales(kTileRows * row.scales), starts(kTileRows * row.starts), sums(kTileRows * row.sums), row_sums(row.bytes - row.sums), bytes(kTileRows * row.bytes) {}
};

}  // namespace braid::kernels::amx
