// What the processor and the operating system offer, by getauxval; the only place that asks. Each goes with those before it.
#pragma once

namespace braid::kernels {

struct CpuFeatures {
  bool dotprod = false;  // FEAT_DotProd: sdot
  bool i8mm = false;     // FEAT_I8MM: usdot, usmmla
  bool bf16 = false;     // FEAT_BF16: bfdot, bfmmla
};
CpuFeatures cpu_features();

}  // namespace braid::kernels
