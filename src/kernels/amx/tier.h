// The AMX tier: matrix products by tiles, of 8-bit integers for quantised weights and of bf16 for F16 and BF16 weights. Everything else is
// the AVX-512 tier's. Quantised products give the same results as scalar/, bit for bit; those of F16 and BF16 weights do not, because
// activations (and F16 weights) are rounded to bf16.
#pragma once

#include <kernels/kernel_table.h>

namespace braid::kernels::amx {

// Bytes of a row of bf16 activations: padded with zeros to whole tiles, rows an odd number of cache lines apart.
std::size_t bf16_row_bytes(std::int64_t inputs) noexcept;
void prepare_bf16_rows(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t inputs, std::byte* prepared) noexcept;
void matmul_bf16(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;

extern const KernelTable kTable;

}  // namespace braid::kernels::amx
