#include "kernels/neon/paired_rows.h"
#include "kernels/neon/tier.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

namespace braid::kernels::neon {
namespace {

using MultiplyQuantized = void (*)(const MatmulArgs&, std::int64_t, std::int64_t) noexcept;

template <bool kPairs>
std::size_t prepared_bytes(WeightType type, std::int64_t inputs, std::int64_t rows) noexcept {
  return kernels::prepared_bytes(type, inputs, kPairs && in_pairs(type, rows) ? rows + rows % 2 : rows);
}

template <bool kPairs>
void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  if (kPairs && in_pairs(type, rows.count)) return prepare_pairs(type, x, x_stride, rows, inputs, prepared);
  scalar::prepare_rows(type, x, x_stride, rows, inputs, prepared);
}

template <MultiplyQuantized kMultiply>
void matmul(const MatmulArgs& args, const PanelSource& panels) noexcept {
  const auto multiply = is_quantized(args.weights->type) ? kMultiply : matmul_float;
  for (PanelRange range; panels.next(panels.context, range);) multiply(args, range.begin, range.end);
}

// kPairs: several rows are multiplied by two.
template <MultiplyQuantized kMultiply, bool kPairs>
constexpr KernelTable make_table(const char* name) {
  KernelTable table = scalar::entries(Isa::kNeon, name);
  table.prepared_bytes = prepared_bytes<kPairs>;
  table.prepare_rows = prepare_rows<kPairs>;
  table.matmul = matmul<kMultiply>;
  table.attention_scratch_bytes = attention_scratch_bytes;
  table.attention = attention;
  table.attention_part = attention_part;
  table.attention_join = attention_join;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table<matmul_quantized, false>("neon");
constinit const KernelTable kDotProductTable = make_table<matmul_quantized_dotprod, false>("neon_dotprod");
constinit const KernelTable kI8mmTable = make_table<matmul_quantized_i8mm, true>("neon_i8mm");

}  // namespace braid::kernels::neon
