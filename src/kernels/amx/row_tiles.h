// How rows are cut into tiles, and the float sums of one pair of panels.
#pragma once

#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/simd.h"
#include "kernels/kernel_table.h"

namespace braid::kernels::amx {

constexpr int kPanels = 2;               // that share one pass over the activations
constexpr std::int64_t kBandTiles = 32;  // row tiles whose sums are kept at once
constexpr std::int64_t kBandRows = kBandTiles * kTileRows;
constexpr std::int64_t kMostBandBytes = 1280 << 10;  // of prepared rows of 8 bits, which then stay in the second-level cache

// At most kBandRows rows in tiles of equal height. With 16 rows and more tiles are full: the last one begins early enough, and
// computes some rows twice.
struct RowTiles {
  std::int64_t rows;

  std::int64_t height() const { return rows < kTileRows ? rows : kTileRows; }
  std::int64_t count() const { return (rows + kTileRows - 1) / kTileRows; }
  std::int64_t first_row(std::int64_t tile) const {
    const std::int64_t last = rows - height();
    return tile * kTileRows < last ? tile * kTileRows : last;
  }
};

// Row tiles of each band of `count` tiles of rows of 8 bits: an even number, about the same for all.
static inline std::int64_t band_tiles(const PreparedTiles& prepared, std::int64_t count) {
  const std::int64_t fitting = kMostBandBytes / prepared.bytes;
  const std::int64_t most = fitting < 2 ? 2 : fitting > kBandTiles ? kBandTiles : fitting;
  const std::int64_t bands = (count + most - 1) / most;
  return (count + 2 * bands - 1) / (2 * bands) * 2;
}

// Sums of a band, [panel][row tile][row][output].
struct BandSums {
  alignas(64) float sums[kPanels][kBandTiles][kTileRows][kPanel];
};

// Writes the sums of one panel to `out`, or adds them: [rows, out_stride], of which `outputs` are left.
static inline void write_panel(const float (&sums)[kBandTiles][kTileRows][kPanel], const RowTiles& tiles, float* out,
                               std::int64_t out_stride, std::int64_t outputs, bool accumulate) {
  const __mmask16 mask = avx512::first_lanes(outputs);
  for (std::int64_t row = 0; row < tiles.rows; ++row) {
    const std::int64_t tile = row / kTileRows;
    const __m512 sum = _mm512_load_ps(sums[tile][row - tiles.first_row(tile)]);
    float* to = out + row * out_stride;
    _mm512_mask_storeu_ps(to, mask, accumulate ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum) : sum);
  }
}

}  // namespace braid::kernels::amx
