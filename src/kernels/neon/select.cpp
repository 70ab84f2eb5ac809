#include "kernels/select.h"

#include "kernels/neon/cpu_features.h"
#include "kernels/neon/tier.h"
#include "kernels/scalar/tier.h"

namespace braid::kernels {

const KernelTable* kernel_table(Isa isa, std::string& missing) {
  switch (isa) {
    case Isa::kScalar:
      return &scalar::kTable;
    case Isa::kNeon: {
      const CpuFeatures features = cpu_features();
      if (features.bf16) return &neon::kBf16Table;
      if (features.i8mm) return &neon::kI8mmTable;
      return features.dotprod ? &neon::kDotProductTable : &neon::kTable;
    }
    case Isa::kAvx2:
    case Isa::kAvx512:
    case Isa::kAmx:
      break;
  }
  missing = "this program is built for 64-bit Arm, which has the tiers scalar and neon";
  return nullptr;
}

const KernelTable& for_float_weights(const KernelTable& table) { return table; }

}  // namespace braid::kernels
