#include "kernels/avx512/prepare_row.h"
#include "kernels/avx512/tier.h"

namespace braid::kernels::avx512 {
namespace {

// A row of a type with a scale for 32 weights.
void prepare_block_row(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  auto* starts = reinterpret_cast<std::uint32_t*>(prepared + layout.starts);
  auto* sums = reinterpret_cast<float*>(prepared + layout.sums);
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b, x += kBlockValues, prepared += kBlockValues) {
    const __m512 inverse = _mm512_set1_ps(inverse_scale(amax_of(x, kBlockValues), scales + b));
    const std::int32_t sum = sum_lanes(_mm512_add_epi32(prepare_half(x, inverse, prepared), prepare_half(x + 16, inverse, prepared + 16)));
    starts[b] = static_cast<std::uint32_t>(kRoundMagicBits) - static_cast<std::uint32_t>(form.bias) * static_cast<std::uint32_t>(sum);
    if (form.codes.minimums) sums[b] = scales[b] * static_cast<float>(sum);
  }
}

}  // namespace

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const BlockForm* form = block_form(type);
  prepared += rows.begin * layout.bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride, prepared += layout.bytes) {
    if (form != nullptr && form->codes.summing == Summing::kBlock) {
      prepare_block_row(*form, layout, x, inputs, prepared);
    } else if (form != nullptr) {
      prepare_row(
          *form, x, inputs,
          {.codes = prepared, .scales = prepared + layout.scales, .starts = prepared + layout.starts, .sums = prepared + layout.sums});
    } else {
      __builtin_memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
    }
  }
}

}  // namespace braid::kernels::avx512
