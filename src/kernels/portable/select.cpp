// For processors without a folder of kernels of their own.
#include "kernels/select.h"

#include "kernels/scalar/tier.h"

namespace braid::kernels {

const KernelTable* kernel_table(Isa isa, std::string& missing) {
  if (isa == Isa::kScalar) return &scalar::kTable;
  missing = "this program is built for a processor that has scalar kernels only";
  return nullptr;
}

const KernelTable& for_float_weights(const KernelTable& table) { return table; }

}  // namespace braid::kernels
