#include "kernels/neon/cpu_features.h"

#include <sys/auxv.h>

namespace braid::kernels {

CpuFeatures cpu_features() {
  // Linux's names for them (asm/hwcap.h of arm64), which older headers lack.
  constexpr unsigned long kDotProduct = 1UL << 20;       // of AT_HWCAP
  constexpr unsigned long kIntegerMatrices = 1UL << 13;  // of AT_HWCAP2
  constexpr unsigned long kBf16Matrices = 1UL << 14;     // of AT_HWCAP2
  CpuFeatures features;
  features.dotprod = (getauxval(AT_HWCAP) & kDotProduct) != 0;
  features.i8mm = features.dotprod && (getauxval(AT_HWCAP2) & kIntegerMatrices) != 0;
  features.bf16 = features.i8mm && (getauxval(AT_HWCAP2) & kBf16Matrices) != 0;
  return features;
}

}  // namespace braid::kernels
