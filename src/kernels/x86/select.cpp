#include "kernels/select.h"

#include "kernels/amx/tier.h"
#include "kernels/avx2/tier.h"
#include "kernels/avx512/tier.h"
#include "kernels/scalar/tier.h"
#include "kernels/x86/built_tiers.h"
#include "kernels/x86/cpu_features.h"

namespace braid::kernels {
namespace {

// A tier's table for processors that read in order.
template <const KernelTable& kTable>
const KernelTable& in_order() {
  static const KernelTable table = [] {
    KernelTable copy = kTable;
    copy.side_by_side = false;
    return copy;
  }();
  return table;
}

// Null, and what is missing, where there is none.
const KernelTable* find_table(Isa isa, std::string& missing) {
  const CpuFeatures features = cpu_features();
  const bool side_by_side = features.side_by_side;
  missing = "this build has no kernels for it: cmake -DBRAID_TIERS=all compiles them";
  switch (isa) {
    case Isa::kScalar:
      return &scalar::kTable;
    case Isa::kAvx2:
      if constexpr (kHasAvx2) {
        if (features.avx2_fma_f16c && features.avx_vnni) return side_by_side ? &avx2::kVnniTable : &in_order<avx2::kVnniTable>();
        if (features.avx2_fma_f16c) return side_by_side ? &avx2::kTable : &in_order<avx2::kTable>();
        missing = "this processor or operating system lacks AVX2, FMA or F16C";
      }
      return nullptr;
    case Isa::kAvx512:
      if constexpr (kHasAvx512) {
        if (features.avx512) return side_by_side ? &avx512::kTable : &in_order<avx512::kTable>();
        missing = "this processor or operating system lacks AVX-512 F, BW, VL, DQ or VNNI";
      }
      return nullptr;
    case Isa::kAmx:
      if constexpr (kHasAmx) {
        if (features.amx && request_tiles()) return &amx::kTable;
        missing = features.amx ? "the operating system refuses AMX tile state to this process (arch_prctl ARCH_REQ_XCOMP_PERM)"
                               : "this processor or operating system lacks AMX tiles, INT8 or BF16, or AVX-512-BF16";
      }
      return nullptr;
    case Isa::kNeon:
      missing = "this is no Arm processor";
      return nullptr;
  }
  missing = "unknown instruction set";
  return nullptr;
}

}  // namespace

const KernelTable* kernel_table(Isa isa, std::string& missing) {
  std::string lack;
  const KernelTable* const table = find_table(isa, lack);
  if (table == nullptr) missing = lack;
  return table;
}

const KernelTable& for_float_weights(const KernelTable& table) {
  if constexpr (kHasAmx) {
    if (table.isa == Isa::kAmx) return amx::kFloatTable;
  }
  return table;
}

}  // namespace braid::kernels
