#include "kernels/neon/paired_rows.h"
#include "kernels/neon/tier.h"
#include "kernels/packed_layout.h"
#include "kernels/scalar/tier.h"

namespace braid::kernels::neon {
namespace {

using MultiplyQuantized = void (*)(const MatmulArgs&, std::int64_t, std::int64_t) noexcept;

// What a variant has beside how it multiplies quantised weights.
struct Variant {
  bool pairs = false;  // several rows are multiplied by two
  bool bf16 = false;   // activations are rounded to bf16 for BF16 weights
};

template <Variant kVariant>
bool in_bf16(WeightType type) {
  return kVariant.bf16 && type == WeightType::kBF16;
}

template <Variant kVariant>
std::size_t prepared_bytes(WeightType type, std::int64_t inputs, std::int64_t rows) noexcept {
  if (in_bf16<kVariant>(type)) return bf16_row_bytes(inputs) * static_cast<std::size_t>(rows);
  return kernels::prepared_bytes(type, inputs, kVariant.pairs && in_pairs(type, rows) ? rows + rows % 2 : rows);
}

template <Variant kVariant>
void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  if (in_bf16<kVariant>(type)) return prepare_bf16_rows(x, x_stride, rows, inputs, prepared);
  if (kVariant.pairs && in_pairs(type, rows.count)) return prepare_pairs(type, x, x_stride, rows, inputs, prepared);
  scalar::prepare_rows(type, x, x_stride, rows, inputs, prepared);
}

template <Variant kVariant, MultiplyQuantized kMultiply>
void matmul(const MatmulArgs& args, const PanelSource& panels) noexcept {
  const WeightType type = args.weights->type;
  const auto multiply = is_quantized(type) ? kMultiply : in_bf16<kVariant>(type) ? matmul_bf16 : matmul_float;
  for (PanelRange range; panels.next(panels.context, range);) multiply(args, range.begin, range.end);
}

template <Variant kVariant, MultiplyQuantized kMultiply>
constexpr KernelTable make_table(const char* name) {
  KernelTable table = scalar::entries(Isa::kNeon, name);
  table.prepared_bytes = prepared_bytes<kVariant>;
  table.prepare_rows = prepare_rows<kVariant>;
  table.matmul = matmul<kVariant, kMultiply>;
  table.attention_scratch_bytes = attention_scratch_bytes;
  table.attention = attention;
  table.attention_part = attention_part;
  table.attention_join = attention_join;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table<Variant{}, matmul_quantized>("neon");
constinit const KernelTable kDotProductTable = make_table<Variant{}, matmul_quantized_dotprod>("neon_dotprod");
constinit const KernelTable kI8mmTable = make_table<Variant{.pairs = true}, matmul_quantized_i8mm>("neon_i8mm");
constinit const KernelTable kBf16Table = make_table<Variant{.pairs = true, .bf16 = true}, matmul_quantized_i8mm>("neon_bf16");

}  // namespace braid::kernels::neon
