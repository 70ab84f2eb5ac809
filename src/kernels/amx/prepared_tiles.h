// Prepared activations of quantised weights as the tiles load them: 16 rows in one piece, so that a tile is 16 cache lines in a row.
// Rows far apart cost half as much time again in a product of 512 rows, and twice as much in one of 32.
//
// A tile of rows has codes [64 inputs][row][64], scales [group][row] (in Summing::kBlock [block][row]), of types with codes of 8 bits the
// starts of sums in the same order, and of types with minimums what those are multiplied by. In Summing::kBlock that is a float,
// [block][row]; in kParts a part's sum as two bf16, a multiple of 256 and the rest, which tiles multiply exactly. They are
// [group][row][tile of a pair][part of the group], in the first tile of each pair, so that for parts of 32 inputs one tile of them has both.
// Starts of other types are left out, because their weights in tiles carry no bias.
// The last tile is as long as the others; its missing rows are never written, but for sums beside those of a row that there is, and never
// read as results.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/numerics.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::amx {

// Products of fewer rows have their rows one by one, for the AVX-512 tier: weights are then not worth expanding, and vectors keep memory as
// busy as tiles do (perf/README.md).
constexpr std::int64_t kFewestRows = 9;
static inline bool in_tiles(WeightType type, std::int64_t rows) { return rows >= kFewestRows && is_quantized(type); }

static inline std::int64_t row_tiles(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

// Byte offsets within one tile of rows.
struct PreparedTiles {
  std::int64_t scales = 0;
  std::int64_t starts = 0;
  std::int64_t sums = 0;
  std::int64_t bytes = 0;  // an odd multiple of a tile, so that the same part of two of them falls into different sets

  PreparedTiles(WeightType type, std::int64_t inputs) {
    const BlockForm& form = *block_form(type);
    const std::int64_t blocks = inputs / kBlockValues;
    const bool of_blocks = form.codes.summing == Summing::kBlock;
    const std::int64_t groups = of_blocks ? blocks : group_count(form.codes, blocks);
    const std::int64_t group_bytes = groups * kTileRows * 4;
    scales = (blocks + 1) / 2 * kTileBytes;
    starts = scales + group_bytes;
    sums = form.codes.low_bits == 8 ? starts + group_bytes : starts;
    const std::int64_t sum_bytes = !form.codes.minimums ? 0 : of_blocks ? group_bytes : groups * form.codes.parts * kTileBytes;
    bytes = ((sums + sum_bytes + kTileBytes - 1) / kTileBytes | 1) * kTileBytes;
  }
};

}  // namespace braid::kernels::amx
