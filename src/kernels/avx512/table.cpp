#include "kernels/avx512/many_rows.h"
#include "kernels/avx512/tier.h"

namespace braid::kernels::avx512 {
namespace {

constexpr KernelTable make_table() {
  KernelTable table = entries(Isa::kAvx512, "avx512");
  table.fuses_swiglu = fuses_swiglu;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table();

}  // namespace braid::kernels::avx512
