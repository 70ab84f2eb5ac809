// What the processor and the operating system offer, by CPUID and XGETBV; the only place that asks.
#pragma once

namespace braid::kernels {

struct CpuFeatures {
  bool avx2_fma_f16c = false;
  bool avx_vnni = false;
  bool avx512 = false;  // F, BW, VL, DQ and VNNI, with OS support
  bool avx512_bf16 = false;
  bool side_by_side = true;  // KernelTable::side_by_side
  bool amx = false;          // tiles, INT8 and BF16, with OS support, and AVX-512-BF16
};
CpuFeatures cpu_features();

// Linux hands out the state of tiles on request only (arch_prctl, 5.16 and later): to the process, and to threads that it starts later.
bool request_tiles();

}  // namespace braid::kernels
