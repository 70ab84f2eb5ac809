// The AMX tier: matrix products by tiles, of 8-bit integers for weights of 256-value and grouped types and of bf16 for F16 and BF16 weights, and attention by
// bf16 tiles, except over f32 pools. Everything else is the AVX-512 tier's. Quantised products give the same results as scalar/, bit for
// bit; those of F16 and BF16 weights and attention do not, because activations (and F16 weights), queries, keys, values and softmax
// weights are rounded to bf16.
#pragma once

#include "kernels/kernel_table.h"

namespace braid::kernels::amx {

// Bytes of a row of bf16 activations: padded with zeros to whole tiles, rows an odd number of cache lines apart.
std::size_t bf16_row_bytes(std::int64_t inputs) noexcept;
void prepare_bf16_rows(const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs, std::byte* prepared) noexcept;
// Of quantised types, in the order of prepared_tiles.h.
void prepare_tile_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                       std::byte* prepared) noexcept;
void matmul_bf16(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void matmul_quantized(const MatmulArgs& args, const PanelSource& panels) noexcept;
std::size_t attention_scratch_bytes(std::int32_t heads, std::int32_t head_dim, bool latent) noexcept;
void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept;
void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept;

extern const KernelTable kTable;
// For models of float weights: attention and F16 products are those of AVX-512, which round nothing to bf16; BF16 products stay in tiles.
extern const KernelTable kFloatTable;

}  // namespace braid::kernels::amx
