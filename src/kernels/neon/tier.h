// The NEON tier of 64-bit Arm: what every such processor has; and variants that multiply quantised weights by sdot (FEAT_DotProd: Apple M1,
// Cortex-A76, Neoverse N1 and later), by usdot and usmmla (FEAT_I8MM: Apple M2, Neoverse V1 and N2 and later), and besides them BF16 weights
// by bfdot and bfmmla (FEAT_BF16: where there is i8mm). Same results as scalar/, bit for bit, but for the last one's products with BF16
// weights, whose activations are rounded to bf16. Norms, activations and the layers with a state are those of scalar/, which the compiler
// turns into vectors.
#pragma once

#include "kernels/kernel_table.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels::neon {

void matmul_float(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void matmul_quantized_dotprod(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void matmul_quantized_i8mm(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
// Rows of quantised types in pairs (paired_rows.h).
void prepare_pairs(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                   std::byte* prepared) noexcept;
// Bytes of a row of bf16 activations: padded with zeros to whole steps of four inputs, rows an odd number of cache lines apart.
std::size_t bf16_row_bytes(std::int64_t inputs) noexcept;
void prepare_bf16_rows(const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs, std::byte* prepared) noexcept;
void matmul_bf16(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
std::size_t attention_scratch_bytes(std::int32_t heads, std::int32_t head_dim, bool latent) noexcept;
void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept;
void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept;
void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept;

extern const KernelTable kTable;
extern const KernelTable kDotProductTable;
extern const KernelTable kI8mmTable;
extern const KernelTable kBf16Table;

}  // namespace braid::kernels::neon
