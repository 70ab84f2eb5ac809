#include <kernels/amx/matmul_quantized.h>
#include <kernels/amx/tier.h>
#include <kernels/avx512/prepare_row.h>

namespace braid::kernels::amx {

void prepare_tile_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                       std::byte* prepared) noexcept {
  const PreparedTiles tiles(prepared_layout(type, inputs));
  const BlockForm& form = *block_form(type);
  for (std::int64_t row = rows.begin; row < rows.end; ++row, x += x_stride) {
    const std::int64_t r = row % kTileRows;
    std::byte* tile = prepared + row / kTileRows * tiles.bytes;
    avx512::prepare_row(form, x, inputs,
                        {.codes = tile + r * kTileRowBytes,
                         .line = kTileBytes,
                         .scales = tile + tiles.scales + r * 4,
                         .scale_stride = kTileRows * 4,
                         .starts = form.codes.grouped ? tile + tiles.starts + r * 4 : nullptr,
                         .start_stride = kTileRows * 4,
                         .sums = tile + tiles.sums + r * tiles.row_sums});
  }
}

void matmul_quantized(const MatmulArgs& args, const PanelSource& panels) noexcept {
  HardwareTiles tiles;
  multiply_quantized(tiles, args, panels);
}

}  // namespace braid::kernels::amx
