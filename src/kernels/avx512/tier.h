// The AVX-512 tier: F, BW, VL, DQ and VNNI. Same results as scalar/, bit for bit.
#pragma once

#include <kernels/kernel_table.h>

namespace braid::kernels::avx512 {

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept;
void matmul_float(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) noexcept;
void rope(float* x, std::int32_t heads, std::int32_t head_dim, std::int32_t rotated, const float* cos, const float* sin,
          bool interleaved) noexcept;
void swiglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept;
void add(float* x, const float* y, std::int64_t n) noexcept;
void kv_store(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) noexcept;
std::size_t attention_scratch_bytes(std::int32_t heads, std::int32_t head_dim) noexcept;
void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept;
void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept;
void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept;
std::int64_t argmax(const float* x, std::int64_t n) noexcept;
float exp_sum(const float* x, std::int64_t n, float scale, float shift, float* out) noexcept;
void masses_above(const float* x, std::int64_t n, float threshold, double* sums) noexcept;

extern const KernelTable kTable;

}  // namespace braid::kernels::avx512
