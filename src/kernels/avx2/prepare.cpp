// Quantises activation rows: 32 values at a time, four vectors.
#include "kernels/avx2/simd.h"
#include "kernels/avx2/tier.h"
#include "kernels/packed_layout.h"
#include "kernels/rotation.h"

namespace braid::kernels::avx2 {
namespace {

// Wraps where what a NaN was converted to overflows.
inline std::int32_t sum_lanes(__m256i lanes) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

// (a + b, a - b) of lanes a and b; `swapped` has them exchanged, kHigh says which are a b.
template <int kHigh>
[[gnu::always_inline]] inline __m256 sum_and_difference(__m256 x, __m256 swapped) {
  return _mm256_blend_ps(_mm256_add_ps(x, swapped), _mm256_sub_ps(swapped, x), kHigh);
}

void rotate_values(const float* x, float* to) {
  __m256 v[8];
  for (int i = 0; i < 8; ++i) v[i] = _mm256_loadu_ps(x + i * 8);
  for (int distance = 4; distance > 0; distance /= 2) {
    for (int i = 0; i < 8; ++i) {
      if ((i & distance) != 0) continue;
      const __m256 a = v[i];
      v[i] = _mm256_add_ps(a, v[i + distance]);
      v[i + distance] = _mm256_sub_ps(a, v[i + distance]);
    }
  }
  for (int i = 0; i < 8; ++i) {
    v[i] = sum_and_difference<0xF0>(v[i], _mm256_permute2f128_ps(v[i], v[i], 1));
    v[i] = sum_and_difference<0xCC>(v[i], _mm256_permute_ps(v[i], 0x4E));
    v[i] = sum_and_difference<0xAA>(v[i], _mm256_permute_ps(v[i], 0xB1));
    _mm256_storeu_ps(to + i * 8, _mm256_mul_ps(v[i], _mm256_set1_ps(kRotationScale)));
  }
}

// 127 / amax of a group, or 0; writes its scale.
inline float inverse_scale(const float* x, std::int64_t values, float* scale) {
  __m256i largest = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < values; i += 8) largest = larger_or_nan(_mm256_loadu_ps(x + i), largest);
  const float amax = largest_or_nan(largest);
  const bool zero = amax < kSmallestAmax;
  *scale = zero ? 0.0F : amax / 127.0F;
  return zero ? 0.0F : 127.0F / amax;
}

// Writes the codes of a block and the sums of their first and last 16.
inline void prepare_block(const float* x, __m256 inverse, std::byte* codes, std::int32_t (&sums)[2]) {
  __m256i rounded[4];
  for (int v = 0; v < 4; ++v) rounded[v] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + v * 8), inverse));
  // Packing works within 128-bit halves and leaves the fours in the order 0 2 4 6 1 3 5 7.
  const __m256i low = _mm256_packs_epi32(rounded[0], rounded[1]);
  const __m256i high = _mm256_packs_epi32(rounded[2], rounded[3]);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), bytes);
  sums[0] = sum_lanes(_mm256_add_epi32(rounded[0], rounded[1]));
  sums[1] = sum_lanes(_mm256_add_epi32(rounded[2], rounded[3]));
}

// What follows from the sum of one part's codes in Summing::kParts. Unsigned where it may wrap.
inline void put_sum(const BlockForm& form, const PreparedLayout& layout, std::int64_t part, std::int32_t sum, std::byte* prepared) {
  reinterpret_cast<std::uint32_t*>(prepared + layout.starts)[part] =
      static_cast<std::uint32_t>(-form.bias) * static_cast<std::uint32_t>(sum);
  if (form.codes.minimums) reinterpret_cast<std::int16_t*>(prepared + layout.sums)[part] = static_cast<std::int16_t>(sum);
}

// A row of a type with a scale for 32 weights.
void prepare_block_row(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  auto* starts = reinterpret_cast<std::int32_t*>(prepared + layout.starts);
  auto* sums = reinterpret_cast<float*>(prepared + layout.sums);
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b) {
    const __m256 inverse = _mm256_set1_ps(inverse_scale(x + b * kBlockValues, kBlockValues, scales + b));
    std::int32_t halves[2];
    prepare_block(x + b * kBlockValues, inverse, prepared + b * kBlockValues, halves);
    const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(halves[0]) + static_cast<std::uint32_t>(halves[1]));
    starts[b] = static_cast<std::int32_t>(static_cast<std::uint32_t>(kRoundMagicBits) -
                                          static_cast<std::uint32_t>(form.bias) * static_cast<std::uint32_t>(sum));
    if (form.codes.minimums) sums[b] = scales[b] * static_cast<float>(sum);
  }
}

// A row of a grouped type.
void prepare_rotated_row(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  alignas(32) float rotated[kMostWideGroupBlocks * kBlockValues];
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  auto* starts = reinterpret_cast<std::uint32_t*>(prepared + layout.starts);
  const std::int64_t blocks = inputs / kBlockValues;
  for (std::int64_t begin = 0; begin < blocks; begin = group_end(form.codes, begin, blocks), ++scales, ++starts) {
    const std::int64_t count = group_end(form.codes, begin, blocks) - begin;
    for (std::int64_t i = 0; i < count * kBlockValues; i += kRotatedValues) rotate_values(x + begin * kBlockValues + i, rotated + i);
    const __m256 inverse = _mm256_set1_ps(inverse_scale(rotated, count * kBlockValues, scales));
    *starts = 0;
    for (std::int64_t b = 0; b < count; ++b) {
      std::int32_t halves[2];
      prepare_block(rotated + b * kBlockValues, inverse, prepared + (begin + b) * kBlockValues, halves);
      *starts += static_cast<std::uint32_t>(-form.bias) * (static_cast<std::uint32_t>(halves[0]) + static_cast<std::uint32_t>(halves[1]));
    }
  }
}

inline void prepare_row(const BlockForm& form, const PreparedLayout& layout, const float* x, std::int64_t inputs, std::byte* prepared) {
  if (form.codes.summing == Summing::kBlock) return prepare_block_row(form, layout, x, inputs, prepared);
  if (form.codes.summing == Summing::kGroup) return prepare_rotated_row(form, layout, x, inputs, prepared);
  auto* scales = reinterpret_cast<float*>(prepared + layout.scales);
  const std::int64_t blocks = inputs / kBlockValues;
  for (std::int64_t begin = 0; begin < blocks; begin = group_end(form.codes, begin, blocks), ++scales) {
    const std::int64_t end = group_end(form.codes, begin, blocks);
    const __m256 inverse = _mm256_set1_ps(inverse_scale(x + begin * kBlockValues, (end - begin) * kBlockValues, scales));
    for (std::int64_t b = begin; b < end; ++b) {
      std::int32_t halves[2];
      prepare_block(x + b * kBlockValues, inverse, prepared + b * kBlockValues, halves);
      if (form.codes.parts == 1) {
        put_sum(form, layout, b, static_cast<std::int32_t>(static_cast<std::uint32_t>(halves[0]) + static_cast<std::uint32_t>(halves[1])),
                prepared);
      } else {
        put_sum(form, layout, b * 2, halves[0], prepared);
        put_sum(form, layout, b * 2 + 1, halves[1], prepared);
      }
    }
  }
}

}  // namespace

void prepare_rows(WeightType type, const float* x, std::int64_t x_stride, const RowRange& rows, std::int64_t inputs,
                  std::byte* prepared) noexcept {
  const PreparedLayout layout = prepared_layout(type, inputs);
  const BlockForm* form = block_form(type);
  prepared += rows.begin * layout.bytes;
  for (std::int64_t r = rows.begin; r < rows.end; ++r, x += x_stride, prepared += layout.bytes) {
    if (form != nullptr) {
      prepare_row(*form, layout, x, inputs, prepared);
    } else {
      __builtin_memcpy(prepared, x, static_cast<std::size_t>(inputs) * sizeof(float));
    }
  }
}

}  // namespace braid::kernels::avx2
