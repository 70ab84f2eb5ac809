#include "kernels/avx2/simd.h"
#include "kernels/avx2/tier.h"

namespace braid::kernels::avx2 {
namespace {

// Interleaved pairs of 4 angles: every angle twice, the pairs' members swapped for the sine.
void rope_interleaved(float* x, std::int32_t pairs, const float* cos, const float* sin) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  for (std::int32_t i = 0; i < pairs; i += 4) {
    const __m256i mask = first_lanes(2 * (pairs - i));
    const __m128i angles = _mm256_castsi256_si128(first_lanes(pairs - i));
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_maskload_ps(cos + i, angles)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_maskload_ps(sin + i, angles)), twice);
    const __m256 v = _mm256_maskload_ps(x + 2 * i, mask);
    const __m256 swapped = _mm256_permute_ps(v, 0xB1);
    store_first(x + 2 * i, 2 * (pairs - i), _mm256_fmaddsub_ps(v, c, _mm256_mul_ps(swapped, s)));
  }
}

void rope_halves(float* x, std::int32_t pairs, const float* cos, const float* sin) {
  for (std::int32_t i = 0; i < pairs; i += 8) {
    const __m256i mask = first_lanes(pairs - i);
    const __m256 c = _mm256_maskload_ps(cos + i, mask);
    const __m256 s = _mm256_maskload_ps(sin + i, mask);
    const __m256 a = _mm256_maskload_ps(x + i, mask);
    const __m256 b = _mm256_maskload_ps(x + pairs + i, mask);
    store_first(x + i, pairs - i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
    store_first(x + pairs + i, pairs - i, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
  }
}

__m256 gelu_of(__m256 x) {
  const __m256 slope = _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(kGeluCubic), _mm256_set1_ps(kGeluLinear));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), exp(_mm256_mul_ps(x, slope))));
}

}  // namespace

void rms_norm(const float* x, const float* weight, std::int64_t n, float epsilon, float* out) noexcept {
  __m256 squares[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int64_t i = 0; i < n; i += 16) {
    for (int half = 0; half < 2; ++half) {
      const __m256 v = _mm256_maskload_ps(x + i + half * 8, first_lanes(n - i - half * 8));
      squares[half] = _mm256_fmadd_ps(v, v, squares[half]);
    }
  }
  const __m128 mean = _mm_set_ss(lane_tree(squares[0], squares[1]) / static_cast<float>(n) + epsilon);
  const __m256 inverse = _mm256_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(mean)));
  for (std::int64_t i = 0; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), inverse);
    store_first(out + i, n - i, _mm256_mul_ps(scaled, _mm256_maskload_ps(weight + i, mask)));
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float epsilon, float* out) noexcept {
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int64_t i = 0; i < n; i += 16) {
    for (int half = 0; half < 2; ++half)
      sums[half] = _mm256_add_ps(sums[half], _mm256_maskload_ps(x + i + half * 8, first_lanes(n - i - half * 8)));
  }
  const __m256 mean = _mm256_set1_ps(lane_tree(sums[0], sums[1]) / static_cast<float>(n));
  __m256 squares[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int64_t i = 0; i < n; i += 16) {
    for (int half = 0; half < 2; ++half) {
      const __m256i mask = first_lanes(n - i - half * 8);
      const __m256 all = _mm256_sub_ps(_mm256_maskload_ps(x + i + half * 8, mask), mean);
      const __m256 difference = _mm256_and_ps(all, _mm256_castsi256_ps(mask));
      squares[half] = _mm256_fmadd_ps(difference, difference, squares[half]);
    }
  }
  const __m128 variance = _mm_set_ss(lane_tree(squares[0], squares[1]) / static_cast<float>(n) + epsilon);
  const __m256 inverse = _mm256_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(variance)));
  for (std::int64_t i = 0; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    const __m256 scaled = _mm256_mul_ps(_mm256_sub_ps(_mm256_maskload_ps(x + i, mask), mean), inverse);
    store_first(out + i, n - i, _mm256_fmadd_ps(scaled, _mm256_maskload_ps(weight + i, mask), _mm256_maskload_ps(bias + i, mask)));
  }
}

void rope(float* x, std::int32_t heads, std::int32_t head_dim, std::int32_t rotated, const float* cos, const float* sin,
          bool interleaved) noexcept {
  for (std::int32_t h = 0; h < heads; ++h, x += head_dim) {
    if (interleaved) {
      rope_interleaved(x, rotated / 2, cos, sin);
    } else {
      rope_halves(x, rotated / 2, cos, sin);
    }
  }
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  const __m256 one = _mm256_set1_ps(1.0F);
  for (std::int64_t i = 0; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    const __m256 g = _mm256_maskload_ps(gate + i, mask);
    const __m256 negated = _mm256_xor_ps(g, _mm256_set1_ps(-0.0F));
    const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, exp(negated)));
    store_first(out + i, n - i, _mm256_mul_ps(silu, _mm256_maskload_ps(up + i, mask)));
  }
}

void geglu(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    store_first(out + i, n - i, _mm256_mul_ps(gelu_of(_mm256_maskload_ps(gate + i, mask)), _mm256_maskload_ps(up + i, mask)));
  }
}

void gelu(const float* x, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; i += 8) store_first(out + i, n - i, gelu_of(_mm256_maskload_ps(x + i, first_lanes(n - i))));
}

void soft_cap(float* x, std::int64_t n, float cap) noexcept {
  const __m256 one = _mm256_set1_ps(1.0F);
  for (std::int64_t i = 0; i < n; i += 8) {
    const __m256 power = exp(_mm256_mul_ps(_mm256_maskload_ps(x + i, first_lanes(n - i)), _mm256_set1_ps(2.0F / cap)));
    const __m256 tanh = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0F), _mm256_add_ps(power, one)));
    store_first(x + i, n - i, _mm256_mul_ps(_mm256_set1_ps(cap), tanh));
  }
}

void add(float* x, const float* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    store_first(x + i, n - i, _mm256_add_ps(_mm256_maskload_ps(x + i, mask), _mm256_maskload_ps(y + i, mask)));
  }
}

// Two passes: the largest value, then its first place.
std::int64_t argmax(const float* x, std::int64_t n) noexcept {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  __m256 largest[4] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int part = 0; part < 4; ++part) largest[part] = _mm256_max_ps(_mm256_loadu_ps(x + i + part * 8), largest[part]);
  }
  for (; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    const __m256 v = _mm256_blendv_ps(lowest, _mm256_maskload_ps(x + i, mask), _mm256_castsi256_ps(mask));
    largest[0] = _mm256_max_ps(v, largest[0]);
  }
  const float best = largest_lane(_mm256_max_ps(_mm256_max_ps(largest[0], largest[1]), _mm256_max_ps(largest[2], largest[3])));
  if (!(best > -__builtin_inff())) return 0;
  for (i = 0; i < n; i += 8) {
    const __m256i mask = first_lanes(n - i);
    const __m256 equal = _mm256_cmp_ps(_mm256_maskload_ps(x + i, mask), _mm256_set1_ps(best), _CMP_EQ_OQ);
    const int lanes = _mm256_movemask_ps(_mm256_and_ps(equal, _mm256_castsi256_ps(mask)));
    if (lanes != 0) return i + __builtin_ctz(static_cast<unsigned>(lanes));
  }
  return 0;
}

float exp_sum(const float* x, std::int64_t n, float scale, float shift, float* out) noexcept {
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int64_t i = 0; i < n; i += 16) {
    for (int half = 0; half < 2; ++half) {
      const __m256i mask = first_lanes(n - i - half * 8);
      const __m256 v = _mm256_maskload_ps(x + i + half * 8, mask);
      const __m256 y = exp(_mm256_fmsub_ps(v, _mm256_set1_ps(scale), _mm256_set1_ps(shift)));
      store_first(out + i + half * 8, n - i - half * 8, y);
      sums[half] = _mm256_add_ps(sums[half], _mm256_and_ps(y, _mm256_castsi256_ps(mask)));
    }
  }
  return lane_tree(sums[0], sums[1]);
}

// Four vectors of 4 doubles to the 16 lanes.
void masses_above(const float* x, std::int64_t n, float threshold, double* sums) noexcept {
  const __m256 least = _mm256_set1_ps(threshold);
  for (std::int64_t begin = 0; begin < n; begin += kMassRun) {
    const std::int64_t end = n - begin < kMassRun ? n : begin + kMassRun;
    __m256d lanes[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
    for (std::int64_t i = begin; i < end; i += 16) {
      for (int half = 0; half < 2; ++half) {
        const __m256i mask = first_lanes(end - i - half * 8);
        const __m256 v = _mm256_maskload_ps(x + i + half * 8, mask);
        const __m256 above = _mm256_and_ps(v, _mm256_and_ps(_mm256_cmp_ps(v, least, _CMP_GT_OQ), _mm256_castsi256_ps(mask)));
        lanes[2 * half] = _mm256_add_pd(lanes[2 * half], _mm256_cvtps_pd(_mm256_castps256_ps128(above)));
        lanes[2 * half + 1] = _mm256_add_pd(lanes[2 * half + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(above, 1)));
      }
    }
    const __m256d four = _mm256_add_pd(_mm256_add_pd(lanes[0], lanes[2]), _mm256_add_pd(lanes[1], lanes[3]));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    sums[begin / kMassRun] = _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
}

}  // namespace braid::kernels::avx2
