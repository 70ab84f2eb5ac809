// Quantises activation rows: 32 values at a time, two vectors.
#include <kernels/avx512/simd.h>
#include <kernels/avx512/tier.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx512 {
namespace {

// Wraps where what a NaN was converted to overflows; _mm512_reduce_add_epi32 would end in a sum of two int.
inline std::int32_t sum_lanes(__m512i lanes) {
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

// Writes the codes and the sums of their first and last 16; returns their scale.
inline float prepare_block(const float* x, std::byte* codes, std::int32_t (&sums)[2]) {
  const __m512 low = _mm512_loadu_ps(x);
  const __m512 high = _mm512_loadu_ps(x + 16);
  const float amax = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(low), _mm512_abs_ps(high)));
  const bool zero = amax < kSmallestAmax;
  const __m512 inverse = _mm512_set1_ps(zero ? 0.0F : 127.0F / amax);
  const __m512i low_codes = _mm512_cvtps_epi32(_mm512_mul_ps(low, inverse));
  const __m512i high_codes = _mm512_cvtps_epi32(_mm512_mul_ps(high, inverse));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(low_codes));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 16), _mm512_cvtepi32_epi8(high_codes));
  sums[0] = sum_lanes(low_codes);
  sums[1] = sum_lanes(high_codes);
  return zero ? 0.0F : amax / 127.0F;
}

// Of each part: start = -bias * sum of codes, and sum = scale * sum of codes where the type has minimums. Unsigned where it may wrap.
inline void prepare_row(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  auto* starts = reinterpret_cast<std::uint32_t*>(prepared + layout.starts);
  auto* sums = reinterpret_cast<float*>(prepared + layout.sums);
  const auto bias = static_cast<std::uint32_t>(-form.bias);
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b) {
    std::int32_t halves[2];
    scales[b] = prepare_block(x + b * kBlockValues, prepared + b * kBlockValues, halves);
    const auto low = static_cast<std::uint32_t>(halves[0]);
    const auto high = static_cast<std::uint32_t>(halves[1]);
    if (form.codes.parts == 1) {
      *starts++ = bias * (low + high);
      if (form.minimum) *sums++ = scales[b] * static_cast<float>(static_cast<std::int32_t>(low + high));
      continue;
    }
    *starts++ = bias * low;
    *starts++ = bias * high;
    if (!form.minimum) continue;
    *sums++ = scales[b] * static_cast<float>(halves[0]);
    *sums++ = scales[b] * static_cast<float>(halves[1]);
  }
}

}  // namespace

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const BlockForm* form = block_form(type);
  for (std::int64_t r = 0; r < rows; ++r, x += x_stride, prepared += layout.bytes) {
    if (form != nullptr) {
      prepare_row(*form, layout, x, inputs, prepared);
    } else {
      __builtin_memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
    }
  }
}

}  // namespace braid::kernels::avx512
