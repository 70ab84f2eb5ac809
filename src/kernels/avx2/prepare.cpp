// Quantises activation rows: 32 values at a time, four vectors.
#include <kernels/avx2/simd.h>
#include <kernels/avx2/tier.h>
#include <kernels/packed_layout.h>

namespace braid::kernels::avx2 {
namespace {

inline std::int32_t sum_lanes(__m256i lanes) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

inline void prepare_block(const float* x, std::int32_t bias, std::byte* codes, float* scale, std::int32_t* start) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  __m256 largest = _mm256_setzero_ps();
  for (int v = 0; v < 4; ++v) largest = _mm256_max_ps(largest, _mm256_and_ps(_mm256_loadu_ps(x + v * 8), magnitude));
  const float amax = largest_lane(largest);
  const bool zero = amax < kSmallestAmax;
  const __m256 inverse = _mm256_set1_ps(zero ? 0.0F : 127.0F / amax);
  __m256i rounded[4];
  for (int v = 0; v < 4; ++v) rounded[v] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + v * 8), inverse));
  // Packing works within 128-bit halves and leaves the fours in the order 0 2 4 6 1 3 5 7.
  const __m256i low = _mm256_packs_epi32(rounded[0], rounded[1]);
  const __m256i high = _mm256_packs_epi32(rounded[2], rounded[3]);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), bytes);
  *scale = zero ? 0.0F : amax / 127.0F;
  // Vectors wrap where the sum of what a NaN was converted to overflows.
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(rounded[0], rounded[1]), _mm256_add_epi32(rounded[2], rounded[3]));
  *start = sum_lanes(_mm256_mullo_epi32(sum, _mm256_set1_epi32(-bias)));
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

}  // namespace braid::kernels::avx2
