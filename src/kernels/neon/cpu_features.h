// What the processor and the operating system offer, by getauxval; the only place that asks.
#pragma once

namespace braid::kernels {

struct CpuFeatures {
  bool dotprod = false;  // FEAT_DotProd: sdot
  bool i8mm = false;     // FEAT_I8MM: usdot, smmla
};
CpuFeatures cpu_features();

}  // namespace braid::kernels
