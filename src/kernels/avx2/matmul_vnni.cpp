#include "kernels/avx2/matmul_quantized.h"

namespace braid::kernels::avx2 {

void matmul_quantized_vnni(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  multiply_panels(args, panel_begin, panel_end);
}

}  // namespace braid::kernels::avx2
