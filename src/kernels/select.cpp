#include "kernels/select.h"

#include "kernels/scalar/tier.h"

namespace braid::kernels {

const KernelTable& best_kernel_table() {
  std::string missing;
  for (const Isa isa : {Isa::kAmx, Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    if (const KernelTable* table = kernel_table(isa, missing)) return *table;
  }
  return scalar::kTable;
}

std::optional<Isa> parse_isa(std::string_view name) {
  if (name == "scalar") return Isa::kScalar;
  if (name == "neon") return Isa::kNeon;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  if (name == "amx") return Isa::kAmx;
  return std::nullopt;
}

}  // namespace braid::kernels
