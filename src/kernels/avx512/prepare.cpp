// Quantises activation rows: 32 values at a time, two vectors.
#include <kernels/avx512/simd.h>
#include <kernels/avx512/tier.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx512 {
namespace {

inline void prepare_block(const float* x, std::int32_t bias, std::byte* codes, float* scale, std::int32_t* start) {
  const __m512 low = _mm512_loadu_ps(x);
  const __m512 high = _mm512_loadu_ps(x + 16);
  const float amax = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const bool zero = amax < kSmallestAmax;
  const __m512 inverse = _mm512_set1_ps(zero ? 0.0F : 127.0F / amax);
  const __m512i low_codes = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
  const __m512i high_codes = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(low_codes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 16), _mm512_cvtepi32_epi8(high_codes));
  *scale = zero ? 0.0F : amax / 127.0F;
  // Vectors wrap where the sum of what a NaN was converted to overflows.
  const __m512i sum = _mm512_add_epi32(low_codes, high_codes);
  *start = _mm512_reduce_add_epi32(_mm512_mullo_epi32(sum, _mm512_set1_epi32(-bias)));
}

}  // namespace

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const bool quantized = is_quantized(type);
  const std::int32_t bias = code_bias(type);
  for (std::int64_t r = 0; r < rows; ++r, x += x_stride, prepared += layout.bytes) {
    if (!quantized) {
      __builtin_memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
      continue;
    }
    auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
    auto* starts = reinterpret_cast<std::int32_t*>(prepared + layout.starts);
    for (std::int64_t b = 0; b < inputs / kBlockValues; ++b) {
      prepare_block(x + b * kBlockValues, bias, prepared + b * kBlockValues, scales + b, starts + b);
    }
  }
}

}  // namespace braid::kernels::avx512
