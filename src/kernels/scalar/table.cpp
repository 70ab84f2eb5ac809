#include "kernels/scalar/tier.h"

namespace braid::kernels::scalar {

constinit const KernelTable kTable = entries(Isa::kScalar, "scalar");

}  // namespace braid::kernels::scalar
