// The AVX2 tier: AVX2, FMA and F16C; and a variant that multiplies quantised weights by AVX-VNNI (Alder Lake and later, Zen 5), for which
// the other one is the reference. Same results as scalar/, bit for bit.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/packed_layout.h"

namespace braid::kernels::avx2 {

#include "kernels/tier_functions.inc"

void matmul_quantized_vnni(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept;
extern const KernelTable kVnniTable;

}  // namespace braid::kernels::avx2
