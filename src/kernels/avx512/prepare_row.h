// Quantises one activation row: 32 values at a time, two vectors. For sources of wide ISAs only.
#pragma once

#include "kernels/avx512/simd.h"
#include "kernels/packed_layout.h"
#include "kernels/rotation.h"

namespace braid::kernels::avx512 {

// Wraps where what a NaN was converted to overflows; _mm512_reduce_add_epi32 would end in a sum of two int.
static inline std::int32_t sum_lanes(__m512i lanes) {
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

// (a + b, a - b) of lanes a and b that `swapped` exchanges; kHigh: the lanes that are a b. A product with 1 or -1 is exact.
template <__mmask16 kHigh>
[[gnu::always_inline]] static inline __m512 sum_and_difference(__m512 x, __m512 swapped) {
  const __m512 one = _mm512_set1_ps(1.0F);
  return _mm512_fmadd_ps(x, _mm512_mask_sub_ps(one, kHigh, _mm512_setzero_ps(), one), swapped);
}

constexpr int kLargerMagnitude = 0xB;  // of _mm512_range_ps: the larger of two magnitudes, without a sign; NaNs lose

// Rotates 64 values, but for kRotationScale, and keeps the largest magnitudes so far: of each of the four vectors, since one after the other
// they would wait for each other. A NaN among the values is one in all sums, so one vector in which it is found is enough.
static inline void rotate_values(const float* x, float* to, __m512 (&amax)[4]) {
  const __m512 a = _mm512_loadu_ps(x);
  const __m512 b = _mm512_loadu_ps(x + 16);
  const __m512 c = _mm512_loadu_ps(x + 32);
  const __m512 d = _mm512_loadu_ps(x + 48);
  const __m512 ac = _mm512_add_ps(a, c);
  const __m512 bd = _mm512_add_ps(b, d);
  const __m512 a_c = _mm512_sub_ps(a, c);
  const __m512 b_d = _mm512_sub_ps(b, d);
  const __m512 sums[4] = {_mm512_add_ps(ac, bd), _mm512_sub_ps(ac, bd), _mm512_add_ps(a_c, b_d), _mm512_sub_ps(a_c, b_d)};
  for (int i = 0; i < 4; ++i) {
    __m512 v = sums[i];
    v = sum_and_difference<0xFF00>(v, _mm512_shuffle_f32x4(v, v, 0x4E));
    v = sum_and_difference<0xF0F0>(v, _mm512_shuffle_f32x4(v, v, 0xB1));
    v = sum_and_difference<0xCCCC>(v, _mm512_permute_ps(v, 0x4E));
    v = sum_and_difference<0xAAAA>(v, _mm512_permute_ps(v, 0xB1));
    _mm512_store_ps(to + i * 16, v);
    amax[i] = i == 0 ? larger_or_nan(v, amax[i]) : _mm512_range_ps(v, amax[i], kLargerMagnitude);
  }
}

// The largest magnitude of a group.
static inline float amax_of(const float* x, std::int64_t values) {
  __m512 even = _mm512_setzero_ps();
  __m512 odd = even;
  for (std::int64_t i = 0; i < values; i += kBlockValues) {
    even = larger_or_nan(_mm512_loadu_ps(x + i), even);
    odd = larger_or_nan(_mm512_loadu_ps(x + i + 16), odd);
  }
  return largest_or_nan(larger_or_nan(even, odd));
}

// 127 / amax of a group, or 0; writes its scale.
static inline float inverse_scale(float amax, float* scale) {
  const bool zero = amax < kSmallestAmax;
  *scale = zero ? 0.0F : amax / 127.0F;
  return zero ? 0.0F : 127.0F / amax;
}

// Writes the codes of 64 values and adds them to `sums`, which any order of lanes does.
static inline __m512i prepare_line(const float* x, __m512 inverse, std::byte* codes, __m512i sums) {
  const auto rounded = [&](int part) { return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_load_ps(x + part * 16), inverse)); };
  // Packing works within 128-bit lanes and leaves fours of each part side by side.
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i bytes = _mm512_packs_epi16(_mm512_packs_epi32(rounded(0), rounded(1)), _mm512_packs_epi32(rounded(2), rounded(3)));
  _mm512_storeu_si512(codes, _mm512_permutexvar_epi32(order, bytes));
  return _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), bytes);
}

// Writes the codes of 16 values and returns them as integers.
static inline __m512i prepare_half(const float* x, __m512 inverse, std::byte* codes) {
  const __m512i values = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(values));
  return values;
}

// Where the parts of one prepared row go.
struct PreparedRow {
  std::byte* codes = nullptr;  // the row's first 64
  std::int64_t line = 64;      // bytes from 64 codes to the next 64
  std::byte* scales = nullptr;
  std::int64_t scale_stride = sizeof(float);  // bytes from a group's scale to the next one's; in Summing::kBlock a block's, or its sum's
  std::byte* starts = nullptr;                // null: not wanted
  std::int64_t start_stride = sizeof(std::int32_t);  // from a group's (block's) to the next one's; in kParts they lie side by side
  std::byte* sums = nullptr;
  bool split_sums = false;    // as two bf16 (amx/prepared_tiles.h), not as int16. Then
  std::int64_t sum_line = 0;  // bytes from some sums side by side to the next ones,
  int sum_shift = 0;          // 1 << this many

  std::byte* block(std::int64_t b) const { return codes + b / 2 * line + b % 2 * kBlockValues; }
};

// An int16 as two bf16 whose sum it is: a multiple of 256 and the rest.
static inline std::uint32_t split_sum(std::int16_t sum) {
  const auto rest = static_cast<float>(sum & 255);
  const auto multiple = static_cast<float>(sum & ~255);
  return __builtin_bit_cast(std::uint32_t, multiple) | __builtin_bit_cast(std::uint32_t, rest) >> 16;
}

// What follows from the sum of one part's codes in Summing::kParts. Unsigned where it may wrap.
static inline void put_sum(const BlockForm& form, std::int64_t part, std::int32_t sum, const PreparedRow& to) {
  if (to.starts != nullptr) {
    reinterpret_cast<std::uint32_t*>(to.starts)[part] = static_cast<std::uint32_t>(-form.bias) * static_cast<std::uint32_t>(sum);
  }
  if (!form.codes.minimums) return;
  std::byte* const at = to.sums + (part >> to.sum_shift) * to.sum_line + (part & ((1 << to.sum_shift) - 1)) * 4;
  if (to.split_sums) {
    *reinterpret_cast<std::uint32_t*>(at) = split_sum(static_cast<std::int16_t>(sum));
  } else {
    reinterpret_cast<std::int16_t*>(to.sums)[part] = static_cast<std::int16_t>(sum);
  }
}

// A row of a grouped type.
static inline void prepare_rotated_row(const BlockForm& form, const float* x, std::int64_t inputs, const PreparedRow& to) {
  alignas(64) float rotated[kMostWideGroupBlocks * kBlockValues];
  const std::int64_t blocks = inputs / kBlockValues;
  for (std::int64_t begin = 0, group = 0; begin < blocks; begin = group_end(form.codes, begin, blocks), ++group) {
    const std::int64_t values = (group_end(form.codes, begin, blocks) - begin) * kBlockValues;
    __m512 amax[4] = {};
    for (std::int64_t i = 0; i < values; i += kRotatedValues) rotate_values(x + begin * kBlockValues + i, rotated + i, amax);
    float scale = 0;
    const __m512 most = larger_or_nan(larger_or_nan(amax[0], amax[1]), larger_or_nan(amax[2], amax[3]));
    // kRotationScale is a power of two, so that it may come last.
    const __m512 inverse = _mm512_set1_ps(inverse_scale(largest_or_nan(most) * kRotationScale, &scale) * kRotationScale);
    __builtin_memcpy(to.scales + group * to.scale_stride, &scale, sizeof scale);
    __m512i sums = _mm512_setzero_si512();
    std::byte* line = to.block(begin);
    for (std::int64_t i = 0; i < values; i += 64, line += to.line) sums = prepare_line(rotated + i, inverse, line, sums);
    const std::uint32_t start = static_cast<std::uint32_t>(-form.bias) * static_cast<std::uint32_t>(sum_lanes(sums));
    __builtin_memcpy(to.starts + group * to.start_stride, &start, sizeof start);
  }
}

// A row of a type with a scale for 32 weights.
static inline void prepare_block_row(const BlockForm& form, const float* x, std::int64_t inputs, const PreparedRow& to) {
  for (std::int64_t b = 0; b < inputs / kBlockValues; ++b, x += kBlockValues) {
    float scale = 0;
    const __m512 inverse = _mm512_set1_ps(inverse_scale(amax_of(x, kBlockValues), &scale));
    __builtin_memcpy(to.scales + b * to.scale_stride, &scale, sizeof scale);
    std::byte* const codes = to.block(b);
    const std::int32_t sum = sum_lanes(_mm512_add_epi32(prepare_half(x, inverse, codes), prepare_half(x + 16, inverse, codes + 16)));
    if (to.starts != nullptr) {
      const std::uint32_t start =
          static_cast<std::uint32_t>(kRoundMagicBits) - static_cast<std::uint32_t>(form.bias) * static_cast<std::uint32_t>(sum);
      __builtin_memcpy(to.starts + b * to.start_stride, &start, sizeof start);
    }
    if (!form.codes.minimums) continue;
    const float scaled = scale * static_cast<float>(sum);
    __builtin_memcpy(to.sums + b * to.scale_stride, &scaled, sizeof scaled);
  }
}

static inline void prepare_row(const BlockForm& form, const float* x, std::int64_t inputs, const PreparedRow& to) {
  if (form.codes.summing == Summing::kBlock) return prepare_block_row(form, x, inputs, to);
  if (form.codes.summing == Summing::kGroup) return prepare_rotated_row(form, x, inputs, to);
  std::byte* scale_at = to.scales;
  const std::int64_t blocks = inputs / kBlockValues;
  for (std::int64_t begin = 0; begin < blocks; begin = group_end(form.codes, begin, blocks), scale_at += to.scale_stride) {
    const std::int64_t end = group_end(form.codes, begin, blocks);
    float scale = 0;
    const __m512 inverse = _mm512_set1_ps(inverse_scale(amax_of(x + begin * kBlockValues, (end - begin) * kBlockValues), &scale));
    __builtin_memcpy(scale_at, &scale, sizeof scale);
    for (std::int64_t b = begin; b < end; ++b) {
      const __m512i low = prepare_half(x + b * kBlockValues, inverse, to.block(b));
      const __m512i high = prepare_half(x + b * kBlockValues + 16, inverse, to.block(b) + 16);
      if (form.codes.parts == 1) {
        put_sum(form, b, sum_lanes(_mm512_add_epi32(low, high)), to);
      } else {
        put_sum(form, b * 2, sum_lanes(low), to);
        put_sum(form, b * 2 + 1, sum_lanes(high), to);
      }
    }
  }
}

}  // namespace braid::kernels::avx512
