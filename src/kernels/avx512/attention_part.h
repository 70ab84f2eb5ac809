// What attention does with one query's scores and parts, whoever computed them: scalar/attention.cpp is the definition. Internal
// linkage only.
#pragma once

#include "kernels/attention_view.h"
#include "kernels/avx512/simd.h"

namespace braid::kernels::avx512 {

constexpr std::int32_t kVectors = kChunkTokens / 16;

// The vectors [first, last) of a chunk that hold what the view sees.
struct VectorRange {
  std::int32_t first;
  std::int32_t last;
};

static inline VectorRange vectors_of(const ChunkView& view, std::int32_t chunk) {
  const std::int32_t begin = view.sink_end > chunk ? chunk : view.begin;
  const std::int32_t end = view.begin < view.end ? view.end : view.sink_end;
  return {(begin - chunk) / 16, (end - chunk + 15) / 16};
}

// The lanes of each vector of a chunk that a view sees.
struct SeenLanes {
  alignas(32) __mmask16 of[kVectors];
};

static inline SeenLanes seen_lanes(const ChunkView& view, std::int32_t chunk) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto before = [&](std::int32_t position) {
    const __m512i count = _mm512_sub_epi32(_mm512_set1_epi32(position - chunk), _mm512_slli_epi32(lanes, 4));
    const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(count, _mm512_setzero_si512()), _mm512_set1_epi32(16));
    return _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), clamped), _mm512_set1_epi32(1));
  };
  const __m512i window = _mm512_andnot_si512(before(view.begin), before(view.end));
  SeenLanes seen;
  _mm256_store_si256(reinterpret_cast<__m256i*>(seen.of), _mm512_cvtepi32_epi16(_mm512_or_si512(window, before(view.sink_end))));
  return seen;
}

static inline void cap_scores(float cap, const VectorRange& range, float* scores) {
  const __m512 one = _mm512_set1_ps(1.0F);
  for (std::int32_t v = range.first; v < range.last; ++v) {
    const __m512 power = exp(_mm512_mul_ps(_mm512_loadu_ps(scores + v * 16), _mm512_set1_ps(2.0F / cap)));
    const __m512 tanh = _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0F), _mm512_add_ps(power, one)));
    _mm512_storeu_ps(scores + v * 16, _mm512_mul_ps(_mm512_set1_ps(cap), tanh));
  }
}

// `behind`: the chunk's first position, counted from the query's.
static inline void slope_scores(float slope, std::int32_t behind, const VectorRange& range, float* scores) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (std::int32_t v = range.first; v < range.last; ++v) {
    const __m512 away = _mm512_cvtepi32_ps(_mm512_add_epi32(lanes, _mm512_set1_epi32(behind + v * 16)));
    _mm512_storeu_ps(scores + v * 16, _mm512_fmadd_ps(_mm512_set1_ps(slope), away, _mm512_loadu_ps(scores + v * 16)));
  }
}

// Joins a part to the sum.
static inline void join(const float* part, std::int32_t head_dim, float* sum) {
  const float top = part[0] > sum[0] ? part[0] : sum[0];
  const __m512 old = exp(_mm512_set1_ps(sum[0] - top));
  const __m512 added = exp(_mm512_set1_ps(part[0] - top));
  sum[0] = top;
  const float added_total = part[1] * _mm512_cvtss_f32(added);
  sum[1] = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(sum[1]), _mm512_castps512_ps128(old), _mm_set_ss(added_total)));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; d += 16) {
    const __m512 values = _mm512_mul_ps(_mm512_loadu_ps(part + d), added);
    _mm512_storeu_ps(sum + d, _mm512_fmadd_ps(_mm512_loadu_ps(sum + d), old, values));
  }
}

static inline void join_sink(float sink, std::int32_t head_dim, float* sum) {
  const float top = sink > sum[0] ? sink : sum[0];
  const __m512 old = exp(_mm512_set1_ps(sum[0] - top));
  const __m512 added = exp(_mm512_set1_ps(sink - top));
  sum[0] = top;
  sum[1] = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(sum[1]), _mm512_castps512_ps128(old), _mm512_castps512_ps128(added)));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; d += 16)
    _mm512_storeu_ps(sum + d, _mm512_mul_ps(_mm512_loadu_ps(sum + d), old));
}

static inline void finish(const float* sum, std::int32_t head_dim, float* out) {
  const __m512 inverse = _mm512_set1_ps(1.0F / sum[1]);
  for (std::int32_t d = 0; d < head_dim; d += 16)
    _mm512_mask_storeu_ps(out + d, first_lanes(head_dim - d), _mm512_mul_ps(_mm512_loadu_ps(sum + kPartHeader + d), inverse));
}

// kInt8: the scales of the chunk's positions up to `end`, as floats [groups, kChunkTokens].
static inline void load_scales(const KvLayer& kv, const std::int32_t* blocks, std::int32_t head, std::int32_t chunk, std::int32_t end,
                               float* key_scales, float* value_scales) {
  const std::int32_t groups = kv_groups(kv.head_dim);
  const auto load = [](const std::byte* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); };
  for (std::int32_t t = chunk; t < end && t < chunk + kChunkTokens; t += 8) {
    const std::byte* scales = kv_bytes(kv, blocks, head, t) + kv.scale_offset + t % kv.block_tokens * 2;
    for (std::int32_t g = 0; g < groups; ++g, scales += kv.block_tokens * 2) {
      _mm256_storeu_ps(key_scales + g * kChunkTokens + t - chunk, load(scales));
      _mm256_storeu_ps(value_scales + g * kChunkTokens + t - chunk, load(scales + value_scale_step(kv)));
    }
  }
}

}  // namespace braid::kernels::avx512
