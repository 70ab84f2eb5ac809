#include "kernels/amx/matmul_bf16.h"
#include "kernels/amx/tier.h"

namespace braid::kernels::amx {

std::size_t bf16_row_bytes(std::int64_t inputs) noexcept {
  const std::int64_t lines = (inputs + kStepInputs - 1) / kStepInputs;
  return static_cast<std::size_t>((lines | 1) * kTileRowBytes);
}

void prepare_bf16_rows(const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs, std::byte* prepared) noexcept {
  const auto row_bytes = static_cast<std::int64_t>(bf16_row_bytes(inputs));
  prepared += rows.begin * row_bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride, prepared += row_bytes) {
    const auto values = [&](std::int64_t i) { return _mm512_maskz_loadu_ps(avx512::first_lanes(inputs - i), x + i); };
    for (std::int64_t i = 0; i < row_bytes / 2; i += kStepInputs)
      _mm512_storeu_si512(prepared + i * 2, round_to_bf16(values(i), values(i + 16)));
  }
}

void matmul_bf16(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  HardwareTiles tiles;
  multiply_bf16(tiles, args, static_cast<std::int64_t>(bf16_row_bytes(args.weights->inputs)), panel_begin, panel_end);
}

}  // namespace braid::kernels::amx
