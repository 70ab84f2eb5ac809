#include "kernels/avx2/tier.h"

namespace braid::kernels::avx2 {
namespace {

void matmul_vnni(const MatmulArgs& args, const PanelSource& panels) noexcept {
  const auto multiply = is_quantized(args.weights->type) ? matmul_quantized_vnni : matmul_float;
  for (PanelRange range; panels.next(panels.context, range);) multiply(args, range.begin, range.end);
}

constexpr KernelTable make_vnni_table() {
  KernelTable table = entries(Isa::kAvx2, "avx2_vnni");
  table.matmul = matmul_vnni;
  return table;
}

}  // namespace

constinit const KernelTable kTable = entries(Isa::kAvx2, "avx2");
constinit const KernelTable kVnniTable = make_vnni_table();

}  // namespace braid::kernels::avx2
