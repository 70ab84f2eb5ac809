#include "kernels/avx512/simd.h"
#include "kernels/avx512/tier.h"

namespace braid::kernels::avx512 {
namespace {

// Interleaved pairs of 8 angles: every angle twice, the pairs' members swapped for the sine.
void rope_interleaved(float* x, std::int32_t pairs, const float* cos, const float* sin) {
  const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  for (std::int32_t i = 0; i < pairs; i += 8) {
    const __mmask16 mask = first_lanes(2 * (pairs - i));
    const __mmask16 angles = first_lanes(pairs - i < 8 ? pairs - i : 8);
    const __m512 c = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(angles, cos + i));
    const __m512 s = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(angles, sin + i));
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + 2 * i);
    const __m512 swapped = _mm512_permute_ps(v, 0xB1);
    _mm512_mask_storeu_ps(x + 2 * i, mask, _mm512_fmaddsub_ps(v, c, _mm512_mul_ps(swapped, s)));
  }
}

// One vector of angles for all heads. Whole vectors are stored without a mask, so that who reads them next need not wait for the cache.
void rope_halves(float* x, std::int32_t heads, std::int32_t head_dim, std::int32_t pairs, const float* cos, const float* sin) {
  const auto rotate = [&](std::int32_t i, __mmask16 mask) {
    const __m512 c = _mm512_maskz_loadu_ps(mask, cos + i);
    const __m512 s = _mm512_maskz_loadu_ps(mask, sin + i);
    for (float* head = x + i; head < x + std::int64_t{heads} * head_dim; head += head_dim) {
      const __m512 a = _mm512_maskz_loadu_ps(mask, head);
      const __m512 b = _mm512_maskz_loadu_ps(mask, head + pairs);
      _mm512_mask_storeu_ps(head, mask, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
      _mm512_mask_storeu_ps(head + pairs, mask, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
  };
  std::int32_t i = 0;
  for (; i + 16 <= pairs; i += 16) rotate(i, 0xFFFF);
  if (i < pairs) rotate(i, first_lanes(pairs - i));
}

__m512 gelu_of(__m512 x) {
  const __m512 slope = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(kGeluCubic), _mm512_set1_ps(kGeluLinear));
  return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0F), exp(_mm512_mul_ps(x, slope))));
}

}  // namespace

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) noexcept {
  __m512 squares = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += 16) {
    const __m512 v = _mm512_maskz_loadu_ps(first_lanes(n - i), x + i);
    squares = _mm512_fmadd_ps(v, v, squares);
  }
  const __m128 mean = _mm_set_ss(lane_tree(squares) / static_cast<float>(n) + epsilon);
  const __m512 inverse = _mm512_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(mean)));
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), inverse);
    _mm512_mask_storeu_ps(out + i, mask, _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(mask, weight + i)));
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float epsilon, float* out) noexcept {
  __m512 sums = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += 16) sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(first_lanes(n - i), x + i));
  const __m512 mean = _mm512_set1_ps(lane_tree(sums) / static_cast<float>(n));
  __m512 squares = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 difference = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, x + i), mean);
    squares = _mm512_fmadd_ps(difference, difference, squares);
  }
  const __m128 variance = _mm_set_ss(lane_tree(squares) / static_cast<float>(n) + epsilon);
  const __m512 inverse = _mm512_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(variance)));
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 scaled = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), mean), inverse);
    const __m512 y = _mm512_fmadd_ps(scaled, _mm512_maskz_loadu_ps(mask, weight + i), _mm512_maskz_loadu_ps(mask, bias + i));
    _mm512_mask_storeu_ps(out + i, mask, y);
  }
}

void rope(float* x, std::int32_t heads, std::int32_t head_dim, std::int32_t rotated, const float* cos, const float* sin,
          bool interleaved) noexcept {
  if (!interleaved) return rope_halves(x, heads, head_dim, rotated / 2, cos, sin);
  for (std::int32_t h = 0; h < heads; ++h, x += head_dim) rope_interleaved(x, rotated / 2, cos, sin);
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  const auto vector = [&](std::int64_t i, __mmask16 mask) {
    _mm512_mask_storeu_ps(out + i, mask, swiglu(_mm512_maskz_loadu_ps(mask, gate + i), _mm512_maskz_loadu_ps(mask, up + i)));
  };
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) vector(i, 0xFFFF);
  if (i < n) vector(i, first_lanes(n - i));
}

void geglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 y = _mm512_mul_ps(gelu_of(_mm512_maskz_loadu_ps(mask, gate + i)), _mm512_maskz_loadu_ps(mask, up + i));
    _mm512_mask_storeu_ps(out + i, mask, y);
  }
}

void gelu(const float* x, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    _mm512_mask_storeu_ps(out + i, mask, gelu_of(_mm512_maskz_loadu_ps(mask, x + i)));
  }
}

void soft_cap(float* x, std::int64_t n, float cap) noexcept {
  const __m512 one = _mm512_set1_ps(1.0F);
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 power = exp(_mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_set1_ps(2.0F / cap)));
    const __m512 tanh = _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0F), _mm512_add_ps(power, one)));
    _mm512_mask_storeu_ps(x + i, mask, _mm512_mul_ps(_mm512_set1_ps(cap), tanh));
  }
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    _mm512_mask_storeu_ps(x + i, mask, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_maskz_loadu_ps(mask, y + i)));
  }
}

// Two passes: the largest value, then its first place.
std::int64_t argmax(const float* x, std::int64_t n) noexcept {
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 largest[4] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (int part = 0; part < 4; ++part) largest[part] = _mm512_max_ps(_mm512_loadu_ps(x + i + part * 16), largest[part]);
  }
  for (; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    largest[0] = _mm512_mask_max_ps(largest[0], mask, _mm512_maskz_loadu_ps(mask, x + i), largest[0]);
  }
  const __m512 both = _mm512_max_ps(_mm512_max_ps(largest[0], largest[1]), _mm512_max_ps(largest[2], largest[3]));
  const float best = _mm512_reduce_max_ps(both);
  if (!(best > -__builtin_inff())) return 0;
  for (i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __mmask16 equal = _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, x + i), _mm512_set1_ps(best), _CMP_EQ_OQ);
    if (equal != 0) return i + __builtin_ctz(equal);
  }
  return 0;
}

float exp_sum(const float* x, std::int64_t n, float scale, float shift, float* out) noexcept {
  __m512 sums = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    const __m512 y = exp(_mm512_fmsub_ps(v, _mm512_set1_ps(scale), _mm512_set1_ps(shift)));
    _mm512_mask_storeu_ps(out + i, mask, y);
    sums = _mm512_mask_add_ps(sums, mask, sums, y);
  }
  return lane_tree(sums);
}

// Two vectors of 8 doubles to the 16 lanes.
void masses_above(const float* x, std::int64_t n, float threshold, double* sums) noexcept {
  const __m512 least = _mm512_set1_ps(threshold);
  for (std::int64_t begin = 0; begin < n; begin += kMassRun) {
    const std::int64_t end = n - begin < kMassRun ? n : begin + kMassRun;
    __m512d low = _mm512_setzero_pd();
    __m512d high = _mm512_setzero_pd();
    for (std::int64_t i = begin; i < end; i += 16) {
      const __m512 v = _mm512_maskz_loadu_ps(first_lanes(end - i), x + i);
      const __mmask16 mask = _mm512_mask_cmp_ps_mask(first_lanes(end - i), v, least, _CMP_GT_OQ);
      const __m512 above = _mm512_maskz_mov_ps(mask, v);
      low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(above)));
      high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(above, 1)));
    }
    const __m512d eight = _mm512_add_pd(low, high);
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    sums[begin / kMassRun] = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
}

}  // namespace braid::kernels::avx512
