// Scores to weights, as bf16 tiles. exp(x) = 2^n (1 + r q(r)), n + r = x log2(e): weights are rounded to bf16, so a relative error of 1e-5
// is enough, 7e-6 of it q's, which interpolates (2^r - 1) / r at the Chebyshev nodes of [-1/2, 1/2]. Limit: about 12 vector instructions
// for 16 scores; for head size 64 twice the time of their tile products.
#pragma once

#include "kernels/amx/query_batch.h"

namespace braid::kernels::amx {

// exp(score - top) with `shift` = -top * log2(e).
static inline __m512 exp_shifted(__m512 score, __m512 shift) {
  const __m512 x = _mm512_fmadd_ps(score, _mm512_set1_ps(kLog2E), shift);
  const __m512 r = _mm512_reduce_ps(x, 0);
  __m512 q = _mm512_fmadd_ps(_mm512_set1_ps(0x1.3c6e5cp-7F), r, _mm512_set1_ps(0x1.c96d5ep-5F));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.ebfb3ep-3F));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(0x1.62e2d2p-1F));
  return _mm512_scalef_ps(_mm512_fmadd_ps(q, r, _mm512_set1_ps(1.0F)), _mm512_sub_ps(x, r));
}

// The largest score that the query sees. kWhole: it sees the whole chunk.
template <bool kWhole>
static inline float top_of(const avx512::SeenLanes& seen, const Band& band, const float* scores) {
  const auto mask = [&](std::int32_t v) { return kWhole ? __mmask16{0xFFFF} : seen.of[v]; };
  __m512 even = _mm512_set1_ps(-__builtin_inff());
  __m512 odd = even;
  for (std::int32_t v = band.first_step() * 2; v < band.last_step() * 2; v += 2) {
    even = _mm512_mask_max_ps(even, mask(v), _mm512_loadu_ps(scores + v * 16), even);
    odd = _mm512_mask_max_ps(odd, mask(v + 1), _mm512_loadu_ps(scores + v * 16 + 16), odd);
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(even, odd));
}

// Stores the weights, zeros where nothing is seen, and returns their sum.
template <bool kWhole>
static inline float weigh(const avx512::SeenLanes& seen, const Band& band, float top, const float* scores, std::byte* line) {
  const __m512 shift = _mm512_set1_ps(-top * kLog2E);
  const auto weights = [&](std::int32_t v) {
    const __m512 all = exp_shifted(_mm512_loadu_ps(scores + v * 16), shift);
    return kWhole ? all : _mm512_maskz_mov_ps(seen.of[v], all);
  };
  __m512 even_sum = _mm512_setzero_ps();
  __m512 odd_sum = _mm512_setzero_ps();
  for (std::int32_t step = band.first_step(); step < band.last_step(); ++step) {
    const __m512 even = weights(step * 2);
    const __m512 odd = weights(step * 2 + 1);
    even_sum = _mm512_add_ps(even_sum, even);
    odd_sum = _mm512_add_ps(odd_sum, odd);
    _mm512_store_si512(line + step * kTileBytes, round_to_bf16(even, odd));
  }
  return avx512::lane_tree(_mm512_add_ps(even_sum, odd_sum));
}

static inline std::byte* line_of(const Batch& batch, int i) {
  return batch.weight_tiles + i / kTileRows * kWeightTiles * kTileBytes + i % kTileRows * kTileRowBytes;
}

// The band's scores become weights, and tops and totals of its parts. All tops come first, because each is a long chain of instructions.
// Queries that see nothing of the chunk keep anything: a tile's rows do not touch each other.
static void soften_band(const Batch& batch, const Band& band, std::int32_t chunk) {
  const int first_row = batch.row_of[band.first];
  avx512::SeenLanes seen[kBandQueries];
  bool whole[kBandQueries];
  for (int r = first_row; r <= batch.row_of[band.first + band.count - 1]; ++r) {
    const ChunkView& view = batch.views[r];
    whole[r - first_row] = sees_all(view, chunk);
    if (!whole[r - first_row]) seen[r - first_row] = avx512::seen_lanes(view, chunk);
  }
  Tops& tops = *batch.part_tops;
  for (int i = 0; i < band.count; ++i) {
    const int r = batch.row_of[band.first + i] - first_row;
    float* scores = batch.scores + i * kScoreStride;
    if (batch.args->score_cap != 0.0F) avx512::cap_scores(batch.args->score_cap, band.range, scores);
    if (batch.args->slopes != nullptr)
      avx512::slope_scores(batch.args->slopes[batch.head * batch.group + batch.head_of[band.first + i]],
                           chunk - batch.position(batch.row_of[band.first + i]), band.range, scores);
    tops.top[i] = whole[r] ? top_of<true>(seen[r], band, scores) : top_of<false>(seen[r], band, scores);
  }
  for (int i = 0; i < band.count; ++i) {
    const int r = batch.row_of[band.first + i] - first_row;
    const float* scores = batch.scores + i * kScoreStride;
    tops.total[i] = whole[r] ? weigh<true>(seen[r], band, tops.top[i], scores, line_of(batch, i))
                             : weigh<false>(seen[r], band, tops.top[i], scores, line_of(batch, i));
  }
}

}  // namespace braid::kernels::amx
