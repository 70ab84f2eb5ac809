#include <kernels/avx512/entries.h>

namespace braid::kernels::avx512 {
namespace {

void matmul(const MatmulArgs& args, const PanelSource& panels) noexcept {
  for (PanelRange range; panels.next(panels.context, range);) {
    if (is_quantized(args.weights->type)) {
      matmul_quantized(args, range.begin, range.end);
    } else {
      matmul_float(args, range.begin, range.end);
    }
  }
}

constexpr KernelTable make_table() {
  KernelTable table = kEntries;
  table.isa = Isa::kAvx512;
  table.name = "avx512";
  table.matmul = matmul;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table();

}  // namespace braid::kernels::avx512
