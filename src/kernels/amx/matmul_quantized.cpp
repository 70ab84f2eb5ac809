#include <kernels/amx/matmul_quantized.h>
#include <kernels/amx/tier.h>
#include <kernels/avx512/tier.h>

namespace braid::kernels::amx {
namespace {

// Fewer rows than this are faster one by one: weights are then not worth expanding.
constexpr std::int64_t kFewestRows = 9;

}  // namespace

void matmul_quantized(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  if (args.rows < kFewestRows) return avx512::matmul_quantized(args, panel_begin, panel_end);
  HardwareTiles tiles;
  multiply_quantized(tiles, args, panel_begin, panel_end);
}

}  // namespace braid::kernels::amx
