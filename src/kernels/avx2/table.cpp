#include "kernels/avx2/tier.h"

namespace braid::kernels::avx2 {

constinit const KernelTable kTable = entries(Isa::kAvx2, "avx2");

}  // namespace braid::kernels::avx2
