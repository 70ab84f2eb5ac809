#include "kernels/amx/prepared_tiles.h"
#include "kernels/amx/tier.h"
#include "kernels/avx512/many_rows.h"
#include "kernels/avx512/tier.h"

#include <cstdint>
#include <limits>

namespace braid::kernels::amx {
namespace {

// What tiles of bf16 multiply: F16 only where the model may be rounded to it.
template <bool kRounds>
bool in_bf16_tiles(WeightType type) {
  return type == WeightType::kBF16 || (kRounds && type == WeightType::kF16);
}

bool fuses_swiglu(WeightType type, std::int64_t rows) noexcept { return in_tiles(type, rows) || avx512::fuses_swiglu(type, rows); }

template <bool kRounds>
std::size_t prepared_bytes(WeightType type, std::int64_t inputs, std::int64_t rows) noexcept {
  if (in_bf16_tiles<kRounds>(type)) return bf16_row_bytes(inputs) * static_cast<std::size_t>(rows);
  if (in_tiles(type, rows)) return static_cast<std::size_t>(row_tiles(rows) * PreparedTiles(type, inputs).bytes);
  return kernels::prepared_bytes(type, inputs, rows);
}

template <bool kRounds>
void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  if (in_bf16_tiles<kRounds>(type)) {
    prepare_bf16_rows(x, x_stride, rows, inputs, prepared);
  } else if (in_tiles(type, rows.count)) {
    prepare_tile_rows(type, x, x_stride, rows, inputs, prepared);
  } else {
    avx512::prepare_rows(type, x, x_stride, rows, inputs, prepared);
  }
}

template <bool kRounds>
void matmul(const MatmulArgs& args, const PanelSource& panels) noexcept {
  const WeightType type = args.weights->type;
  if (in_tiles(type, args.rows)) return matmul_quantized(args, panels);
  for (PanelRange range; panels.next(panels.context, range);) {
    if (is_quantized(type)) {
      avx512::matmul_quantized(args, range.begin, range.end);
    } else if (in_bf16_tiles<kRounds>(type)) {
      matmul_bf16(args, range.begin, range.end);
    } else {
      avx512::matmul_float(args, range.begin, range.end);
    }
  }
}

template <bool kRounds>
constexpr KernelTable make_products(const char* name) {
  KernelTable table = avx512::entries(Isa::kAmx, name);
  table.large_results = std::numeric_limits<std::int64_t>::max();  // such machines' third-level caches hold them
  table.prepared_bytes = prepared_bytes<kRounds>;
  table.prepare_rows = prepare_rows<kRounds>;
  table.matmul = matmul<kRounds>;
  table.fuses_swiglu = fuses_swiglu;
  return table;
}

constexpr KernelTable make_table() {
  KernelTable table = make_products<true>("amx");
  table.kv_type = KvType::kBF16;  // tiles round f16 to it
  table.attention_scratch_bytes = attention_scratch_bytes;
  table.attention = attention;
  table.attention_part = attention_part;
  return table;
}

}  // namespace

constinit const KernelTable kTable = make_table();
constinit const KernelTable kFloatTable = make_products<false>("amx_float");

}  // namespace braid::kernels::amx
