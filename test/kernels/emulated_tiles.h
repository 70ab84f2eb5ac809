// The AMX tier's matrix products on an emulation of the tile instructions: its loops, layouts and order on machines without AMX. They need
// AVX-512.
#pragma once

#include "kernels/kernel_table.h"

namespace braid::kernels::test {

void emulated_matmul_quantized(const MatmulArgs& args, const PanelSource& panels) noexcept;

// `prepared` rows are bf16, `row_bytes` apart.
void emulated_matmul_bf16(const MatmulArgs& args, std::int64_t row_bytes, std::int64_t panel_begin, std::int64_t panel_end) noexcept;

// The AVX-512 tier with the attention of the AMX tier on emulated tiles; null without AVX-512 and its BF16.
const KernelTable* emulated_attention();

}  // namespace braid::kernels::test
