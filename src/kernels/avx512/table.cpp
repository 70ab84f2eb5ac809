#include <kernels/avx512/entries.h>
#include <kernels/avx512/many_rows.h>

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

bool fuses_swiglu(WeightType type, std::int64_t rows) noexcept { return is_quantized(type) && takes_many_rows(rows); }

constexpr KernelTable make_table() {
  KernelTable table = kEntries;
  table.isa = Isa::kAvx512;
  table.name = "avx512";
  table.matmul = matmul;
  table.fuses_swiglu = fuses_swiglu;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table();

}  // namespace braid::kernels::avx512
