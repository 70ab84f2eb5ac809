#include "kernels/neon/tier.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

namespace braid::kernels::neon {
namespace {

using MultiplyQuantized = void (*)(const MatmulArgs&, std::int64_t, std::int64_t) noexcept;

template <MultiplyQuantized kMultiply>
void matmul(const MatmulArgs& args, const PanelSource& panels) noexcept {
  const auto multiply = is_quantized(args.weights->type) ? kMultiply : matmul_float;
  for (PanelRange range; panels.next(panels.context, range);) multiply(args, range.begin, range.end);
}

template <MultiplyQuantized kMultiply>
constexpr KernelTable make_table(const char* name) {
  KernelTable table = scalar::entries(Isa::kNeon, name);
  table.matmul = matmul<kMultiply>;
  table.attention_scratch_bytes = attention_scratch_bytes;
  table.attention = attention;
  table.attention_part = attention_part;
  table.attention_join = attention_join;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table<matmul_quantized>("neon");
constinit const KernelTable kDotProductTable = make_table<matmul_quantized_dotprod>("neon_dotprod");
constinit const KernelTable kI8mmTable = make_table<matmul_quantized_i8mm>("neon_i8mm");

}  // namespace braid::kernels::neon
