// Which tier this machine can run, and the table of one.
#pragma once

#include "kernels/kernel_table.h"

#include <optional>
#include <string>
#include <string_view>

namespace braid::kernels {

// What CPUID and XGETBV say; the only place that asks.
struct CpuFeatures {
  bool avx2_fma_f16c = false;
  bool avx_vnni = false;
  bool avx512 = false;  // F, BW, VL, DQ and VNNI, with OS support
  bool avx512_bf16 = false;
  bool side_by_side = true;  // KernelTable::side_by_side
  bool amx = false;          // tiles, INT8 and BF16, with OS support, and AVX-512-BF16
};
CpuFeatures cpu_features();

// The table of a tier, or null with `missing` naming what the machine lacks. For AMX it asks the kernel for tile state, so call it before
// any thread that computes is started.
const KernelTable* kernel_table(Isa isa, std::string& missing);

// The best tier of this machine.
const KernelTable& best_kernel_table();

std::optional<Isa> parse_isa(std::string_view name);  // scalar, avx2, avx512, amx

}  // namespace braid::kernels
