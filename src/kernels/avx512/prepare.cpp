#include "kernels/avx512/prepare_row.h"
#include "kernels/avx512/tier.h"

namespace braid::kernels::avx512 {
void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const BlockForm* form = block_form(type);
  prepared += rows.begin * layout.bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride, prepared += layout.bytes) {
    if (form != nullptr) {
      prepare_row(
          *form, x, inputs,
          {.codes = prepared, .scales = prepared + layout.scales, .starts = prepared + layout.starts, .sums = prepared + layout.sums});
    } else {
      __builtin_memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
    }
  }
}

}  // namespace braid::kernels::avx512
