#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/tier.h"
#include "kernels/avx512/prepare_row.h"

#include <cstring>

namespace braid::kernels::amx {

void prepare_tile_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                       std::byte* prepared) noexcept {
  const PreparedTiles tiles(type, inputs);
  const BlockForm& form = *block_form(type);
  const bool of_blocks = form.codes.summing == Summing::kBlock;
  const bool paired = form.codes.minimums && !of_blocks;
  const std::int64_t row_sums = form.codes.parts * kTileRowBytes / 2;  // of a group
  for (std::int64_t row = rows.begin; row < rows.end; ++row, x += x_stride) {
    const std::int64_t r = row % kTileRows;
    const std::int64_t second = row / kTileRows % 2;
    std::byte* const tile = prepared + row / kTileRows * tiles.bytes;
    std::byte* const pair_sums = tile - second * tiles.bytes + tiles.sums + r * 2 * row_sums;
    avx512::prepare_row(form, x, inputs,
                        {.codes = tile + r * kTileRowBytes,
                         .line = kTileBytes,
                         .scales = tile + tiles.scales + r * 4,
                         .scale_stride = kTileRows * 4,
                         .starts = form.codes.low_bits == 8 ? tile + tiles.starts + r * 4 : nullptr,
                         .start_stride = kTileRows * 4,
                         .sums = of_blocks ? tile + tiles.sums + r * 4 : pair_sums + second * row_sums,
                         .split_sums = true,
                         .sum_line = form.codes.parts * kTileBytes,
                         .sum_shift = form.codes.parts + 2});
    if (!paired || second == 1 || row + kTileRows < rows.count) continue;
    for (std::int64_t b = 0; b < inputs / kBlockValues; b += kGroupBlocks) {  // what zeros are multiplied by must be numbers
      std::memset(pair_sums + b / kGroupBlocks * form.codes.parts * kTileBytes + row_sums, 0, static_cast<std::size_t>(row_sums));
    }
  }
}

}  // namespace braid::kernels::amx
