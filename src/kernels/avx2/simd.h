// Vectors of 8 floats: the lane tree, exp and masks of numerics.h. Internal linkage only.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/numerics.h"

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace braid::kernels::avx2 {

// All bits in the first `count` lanes; in all of them from 8 on, in none below 1.
static inline __m256i first_lanes(std::int64_t count) {
  const int lanes = static_cast<int>(count > 8 ? 8 : count < 0 ? 0 : count);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Lanes 0 to 7 and 8 to 15 of a reduction.
static inline float lane_tree(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline float largest_lane(__m256 lanes) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// The larger of `magnitudes` and those of `x`, as integers, of which those of NaNs are the largest: what is scaled by it is then NaN too.
static inline __m256i larger_or_nan(__m256 x, __m256i magnitudes) {
  return _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7FFFFFFF)), magnitudes);
}

static inline float largest_or_nan(__m256i magnitudes) {
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(magnitudes), _mm256_extracti128_si256(magnitudes, 1));
  const __m128i two = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
  return __builtin_bit_cast(float, _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 1))));
}

static inline __m256 exp(__m256 x) {
  const __m256 magic = _mm256_set1_ps(kRoundMagic);
  const __m256 clamped = _mm256_min_ps(_mm256_set1_ps(kExpHighest), x);
  const __m256 shifted = _mm256_fmadd_ps(clamped, _mm256_set1_ps(kLog2E), magic);
  const __m256 n = _mm256_sub_ps(shifted, magic);
  const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), clamped));
  __m256 q = _mm256_fmadd_ps(_mm256_set1_ps(kExpQ4), r, _mm256_set1_ps(kExpQ3));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ2));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ1));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(kExpQ0));
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 fraction = _mm256_fmadd_ps(_mm256_fmadd_ps(q, r, one), r, one);
  const __m256i exponent = _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23), _mm256_set1_epi32(0x3F800000));
  const __m256 lowest = _mm256_cmp_ps(x, _mm256_set1_ps(kExpLowest), _CMP_LT_OQ);
  return _mm256_andnot_ps(lowest, _mm256_mul_ps(fraction, _mm256_castsi256_ps(exponent)));
}

static inline __m256i broadcast_int(const std::byte* from) {
  std::int32_t value;
  __builtin_memcpy(&value, from, sizeof(value));
  return _mm256_set1_epi32(value);
}

static inline __m256 broadcast_float(const std::byte* from) {
  float value;
  __builtin_memcpy(&value, from, sizeof(value));
  return _mm256_set1_ps(value);
}

static inline __m256 load_halves(const void* from) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from))); }

// Stores the first `count` lanes, 8 at most. Masked stores are slow on AMD.
static inline void store_first(float* out, std::int64_t count, __m256 y) {
  if (count >= 8) return _mm256_storeu_ps(out, y);
  _mm256_maskstore_ps(out, first_lanes(count), y);
}

// Stores the first `outputs` of 8, or adds them to what is there. past_caches: writes_past_caches().
static inline void store_outputs(float* out, std::int64_t outputs, bool accumulate, bool past_caches, __m256 y) {
  if (past_caches && outputs >= 8) return _mm256_stream_ps(out, y);
  store_first(out, outputs, accumulate ? _mm256_add_ps(_mm256_maskload_ps(out, first_lanes(outputs)), y) : y);
}

}  // namespace braid::kernels::avx2
