// Vectors of 16 floats: the lane tree, exp and masks of numerics.h. Internal linkage only.
#pragma once

#include "kernels/numerics.h"

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace braid::kernels::avx512 {

// The first `count` lanes; all of them from 16 on, none below 1.
static inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : count <= 0 ? 0 : (1 << count) - 1);
}

static inline float lane_tree(__m512 lanes) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The larger of `magnitudes` and those of `x`, as integers, of which those of NaNs are the largest: what is scaled by it is then NaN too.
[[gnu::always_inline]] static inline __m512 larger_or_nan(__m512 x, __m512 magnitudes) {
  return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(_mm512_abs_ps(x)), _mm512_castps_si512(magnitudes)));
}

static inline float largest_or_nan(__m512 magnitudes) {
  return __builtin_bit_cast(float, _mm512_reduce_max_epi32(_mm512_castps_si512(magnitudes)));
}

static inline __m512 exp(__m512 x) {
  const __m512 magic = _mm512_set1_ps(kRoundMagic);
  const __m512 clamped = _mm512_min_ps(_mm512_set1_ps(kExpHighest), x);
  const __m512 shifted = _mm512_fmadd_ps(clamped, _mm512_set1_ps(kLog2E), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  const __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), clamped));
  __m512 q = _mm512_fmadd_ps(_mm512_set1_ps(kExpQ4), r, _mm512_set1_ps(kExpQ3));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ2));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ1));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(kExpQ0));
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 fraction = _mm512_fmadd_ps(_mm512_fmadd_ps(q, r, one), r, one);
  const __m512i exponent = _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23), _mm512_set1_epi32(0x3F800000));
  const __mmask16 lowest = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kExpLowest), _CMP_LT_OQ);
  return _mm512_maskz_mul_ps(static_cast<__mmask16>(~lowest), fraction, _mm512_castsi512_ps(exponent));
}

// silu(gate) * up
static inline __m512 swiglu(__m512 gate, __m512 up) {
  const __m512 negated = _mm512_xor_ps(gate, _mm512_set1_ps(-0.0F));
  return _mm512_mul_ps(_mm512_div_ps(gate, _mm512_add_ps(_mm512_set1_ps(1.0F), exp(negated))), up);
}

static inline __m512i broadcast_int(const std::byte* from) {
  std::int32_t value;
  __builtin_memcpy(&value, from, sizeof(value));
  return _mm512_set1_epi32(value);
}

static inline __m512 broadcast_float(const std::byte* from) {
  float value;
  __builtin_memcpy(&value, from, sizeof(value));
  return _mm512_set1_ps(value);
}

static inline __m512 load_halves(const void* from) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from))); }

// Stores the first `outputs` results of a panel, or adds them to what is there. past_caches: writes_past_caches().
static inline void store_panel(float* out, std::int64_t outputs, bool accumulate, bool past_caches, __m512 y) {
  const __mmask16 mask = first_lanes(outputs);
  if (past_caches && mask == 0xFFFF) return _mm512_stream_ps(out, y);
  if (accumulate) y = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), y);
  _mm512_mask_storeu_ps(out, mask, y);
}

}  // namespace braid::kernels::avx512
