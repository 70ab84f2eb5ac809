// The NEON tier of 64-bit Arm: what every such processor has; and variants that multiply quantised weights by sdot (FEAT_DotProd: Apple M1,
// Cortex-A76, Neoverse N1 and later), and by usdot and usmmla (FEAT_I8MM: Apple M2, Neoverse V1 and N2 and later). Same results as scalar/,
// bit for bit. Norms, activations and the layers with a state are those of scalar/, which the compiler turns into vectors.
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
std::size_t attention_scratch_bytes(std::int32_t heads, std::int32_t head_dim, bool latent) noexcept;
void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept;
void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept;
void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept;

extern const KernelTable kTable;
extern const KernelTable kDotProductTable;
extern const KernelTable kI8mmTable;

}  // namespace braid::kernels::neon
