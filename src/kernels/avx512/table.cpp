#include <kernels/avx512/entries.h>

namespace braid::kernels::avx512 {
namespace {

void matmul(const MatmulArgs& args, std::int64_t panel_begin, std::int64_t panel_end) noexcept {
  if (is_quantized(args.weights->type)) {
    matmul_quantized(args, panel_begin, panel_end, OneRow::kByPanels);
  } else {
    matmul_float(args, panel_begin, panel_end);
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
