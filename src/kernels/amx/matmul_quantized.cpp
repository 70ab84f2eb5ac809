#include "kernels/amx/matmul_quantized.h"

#include "kernels/amx/tier.h"

namespace braid::kernels::amx {

void matmul_quantized(const MatmulArgs& args, const PanelSource& panels) noexcept {
  HardwareTiles tiles;
  multiply_quantized(tiles, args, panels);
}

}  // namespace braid::kernels::amx
