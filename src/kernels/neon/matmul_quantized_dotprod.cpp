#include "kernels/neon/matmul_quantized.h"

namespace braid::kernels::neon {

void matmul_quantized_dotprod(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  multiply_panels(args, panel_begin, panel_end);
}

}  // namespace braid::kernels::neon
