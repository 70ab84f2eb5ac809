// Attention as scalar/attention.cpp defines it, for up to kQueryTile query vectors in one pass over keys and values: the heads that
// share a KV head, and the next rows of the same sequence. A vector is 8 positions for scores (keys are stored transposed) and 8
// dimensions for the weighted values, so neither needs a sum across lanes. A block-wise layout defeats the hardware's prefetch, so what
// comes next is fetched by hand.
#include "kernels/avx2/kv_load.h"
#include "kernels/avx2/latent_keys.h"
#include "kernels/avx2/tier.h"
#include "kernels/query_tile.h"

namespace braid::kernels::avx2 {
namespace {

constexpr std::int32_t kVectors = kChunkTokens / 8;

using Tile = QueryTile<const std::byte*, kVectors>;

// Scores of queries [q, q + kQueries) with the positions of kKeys vectors, over dimensions [begin, end): a group of kInt8, else
// all.
template <KvType kType, KeyForm kForm, int kQueries, int kKeys>
void score(const Tile& tile, int q, std::int32_t vector, std::int32_t begin, std::int32_t end) {
  constexpr KvType kKeyType = kForm == KeyForm::kUnpacked ? KvType::kF32 : kType;
  const std::int64_t step = kForm == KeyForm::kUnpacked ? 32 : tile.kv->block_tokens * kv_element_bytes(kType);
  const std::byte* at[kKeys];
#pragma GCC unroll 8
  for (int v = 0; v < kKeys; ++v) at[v] = tile.keys[vector + v];
  const float* query = tile.queries + q;
  __m256 sum[kQueries][kKeys];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm256_setzero_ps();
  }
  const std::int64_t values = static_cast<std::int64_t>(tile.kv->value_offset);
  for (std::int32_t d = begin; d < end; ++d) {
    // The block's values come next, and lie just as far in.
#pragma GCC unroll 8
    for (int v = 0; v < kKeys && kForm != KeyForm::kUnpacked; ++v)
      _mm_prefetch(reinterpret_cast<const char*>(at[v] + values + d * step), _MM_HINT_T1);
    const bool odd = d % kv_pair(kKeyType) != 0;
    __m256 key[kKeys];
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) key[v] = load_kv<kKeyType>(at[v] + (d - odd) * step, odd);
#pragma GCC unroll 8
    for (int i = 0; i < kQueries; ++i) {
      const __m256 scaled = _mm256_set1_ps(query[d * kQueryTile + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm256_fmadd_ps(scaled, key[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) {
      float* out = tile.weights + (q + i) * kChunkTokens + (vector + v) * 8;
      if constexpr (kType == KvType::kInt8) {
        const __m256 scale = _mm256_loadu_ps(tile.key_scales + begin / kKvGroup * kChunkTokens + (vector + v) * 8);
        sum[i][v] = begin == 0 ? _mm256_mul_ps(sum[i][v], scale) : _mm256_fmadd_ps(sum[i][v], scale, _mm256_loadu_ps(out));
      }
      _mm256_storeu_ps(out, sum[i][v]);
    }
  }
}

// Adds weight * value of positions [begin, end) to kDims vectors of the parts from dimension d on; `weights` are of the tile's
// form.
template <KvType kType, int kQueries, int kDims, bool kPartial>
void add_values(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d) {
  const KvLayer& kv = *tile.kv;
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  constexpr std::int64_t kPair = kv_pair(kType);
  const std::int64_t left = kv.head_dim - d;
  weights += q * kChunkTokens - tile.chunk;
  __m256 acc[kQueries][kDims];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) acc[i][v] = _mm256_loadu_ps(tile.part[q + i] + kPartHeader + d + v * 8);
  }
  for (std::int32_t t = begin; t < end;) {
    const std::int32_t slot = t % kv.block_tokens;
    const std::int32_t block_end = t - slot + kv.block_tokens < end ? t - slot + kv.block_tokens : end;
    const std::byte* value = head_bytes(tile, t) + kv.value_offset + value_element(kType, kv.head_dim, slot - slot % kPair, d) * kBytes;
    const std::byte* ahead = keys_ahead(tile, t) + (slot * kv.head_dim + d) * kBytes;
    for (; t < block_end; ++t, ahead += kv.head_dim * kBytes) {
      for (int line = 0; line < kDims * 8 * kBytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(ahead + line), _MM_HINT_T1);
      const bool odd = t % kPair != 0;
      __m256 values[kDims];
#pragma GCC unroll 8
      for (int v = 0; v < kDims; ++v) values[v] = load_values<kType, kPartial>(value + v * 8 * kPair * kBytes, left, odd);
      if (kPair == 1 || odd) value += kPair * kv.head_dim * kBytes;
#pragma GCC unroll 8
      for (int i = 0; i < kQueries; ++i) {
        const __m256 weight = _mm256_set1_ps(weights[i * kChunkTokens + t]);
#pragma GCC unroll 8
        for (int v = 0; v < kDims; ++v) acc[i][v] = _mm256_fmadd_ps(weight, values[v], acc[i][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) _mm256_storeu_ps(tile.part[q + i] + kPartHeader + d + v * 8, acc[i][v]);
  }
}

template <KvType kType, int kQueries>
void add_dims(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d, std::int32_t d_end) {
  constexpr int kDims = kQueries >= 4 ? 2 : 4;
  if (begin >= end) return;
  for (; d + kDims * 8 <= d_end; d += kDims * 8) add_values<kType, kQueries, kDims, false>(tile, q, weights, begin, end, d);
  for (; d + 8 <= d_end; d += 8) add_values<kType, kQueries, 1, false>(tile, q, weights, begin, end, d);
  if (d < d_end) add_values<kType, kQueries, 1, true>(tile, q, weights, begin, end, d);
}

// The vectors of the chunk that hold what a query sees.
struct SeenLanes {
  const ChunkView& view;
  std::int32_t chunk;
  std::int32_t first = view.sink_end > chunk ? 0 : (view.begin - chunk) / 8;
  std::int32_t last = ((view.begin < view.end ? view.end : view.sink_end) - chunk + 7) / 8;

  __m256 lanes(std::int32_t v) const {
    const std::int32_t at = chunk + v * 8;
    const __m256i window = _mm256_andnot_si256(first_lanes(view.begin - at), first_lanes(view.end - at));
    return _mm256_castsi256_ps(_mm256_or_si256(window, first_lanes(view.sink_end - at)));
  }
};

void cap_scores(float cap, const SeenLanes& seen, float* scores) {
  const __m256 one = _mm256_set1_ps(1.0F);
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const __m256 power = exp(_mm256_mul_ps(_mm256_loadu_ps(scores + v * 8), _mm256_set1_ps(2.0F / cap)));
    const __m256 tanh = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0F), _mm256_add_ps(power, one)));
    _mm256_storeu_ps(scores + v * 8, _mm256_mul_ps(_mm256_set1_ps(cap), tanh));
  }
}

// `behind`: the chunk's first position, counted from the query's.
void slope_scores(float slope, std::int32_t behind, const SeenLanes& seen, float* scores) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const __m256 away = _mm256_cvtepi32_ps(_mm256_add_epi32(lanes, _mm256_set1_epi32(behind + v * 8)));
    _mm256_storeu_ps(scores + v * 8, _mm256_fmadd_ps(_mm256_set1_ps(slope), away, _mm256_loadu_ps(scores + v * 8)));
  }
}

// The largest score that the query sees. kWhole: it sees the whole chunk, and no mask is needed.
template <bool kWhole>
float top_of(const SeenLanes& seen, const float* scores) {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  __m256 largest = lowest;
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const __m256 own = _mm256_loadu_ps(scores + v * 8);
    largest = _mm256_max_ps(kWhole ? own : _mm256_blendv_ps(lowest, own, seen.lanes(v)), largest);
  }
  return largest_lane(largest);
}

// Scores become weights; returns the sum of those that the query sees.
template <bool kWhole>
float weigh(const SeenLanes& seen, float top, float* scores) {
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int32_t v = seen.first; v < seen.last; ++v) {
    const __m256 weight = exp(_mm256_sub_ps(_mm256_loadu_ps(scores + v * 8), _mm256_set1_ps(top)));
    _mm256_storeu_ps(scores + v * 8, weight);
    sums[v % 2] = _mm256_add_ps(sums[v % 2], kWhole ? weight : _mm256_and_ps(weight, seen.lanes(v)));
  }
  return lane_tree(sums[0], sums[1]);
}

// Scores become weights, and the parts get their tops and totals, and no values yet. All tops come first, because each is a long chain of
// instructions.
template <int kQueries>
void soften(const Tile& tile, int q) {
  for (int i = q; i < q + kQueries; ++i) {
    const SeenLanes seen{tile.view[i], tile.chunk};
    float* scores = tile.weights + i * kChunkTokens;
    if (tile.args->score_cap != 0.0F) cap_scores(tile.args->score_cap, seen, scores);
    if (tile.args->slopes != nullptr) slope_scores(tile.slope[i], tile.chunk - tile.position[i], seen, scores);
    tile.part[i][0] = sees_all(tile.view[i], tile.chunk) ? top_of<true>(seen, scores) : top_of<false>(seen, scores);
  }
  for (int i = q; i < q + kQueries; ++i) {
    const SeenLanes seen{tile.view[i], tile.chunk};
    float* part = tile.part[i];
    float* scores = tile.weights + i * kChunkTokens;
    part[1] = sees_all(tile.view[i], tile.chunk) ? weigh<true>(seen, part[0], scores) : weigh<false>(seen, part[0], scores);
    for (std::int32_t d = 0; d < tile.kv->head_dim; d += 8) _mm256_storeu_ps(part + kPartHeader + d, _mm256_setzero_ps());
  }
}

// Joins a part to the sum.
void join(const float* part, std::int32_t head_dim, float* sum) {
  const float top = part[0] > sum[0] ? part[0] : sum[0];
  const __m256 old = exp(_mm256_set1_ps(sum[0] - top));
  const __m256 added = exp(_mm256_set1_ps(part[0] - top));
  sum[0] = top;
  const float added_total = part[1] * _mm256_cvtss_f32(added);
  sum[1] = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(sum[1]), _mm256_castps256_ps128(old), _mm_set_ss(added_total)));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; d += 8) {
    const __m256 values = _mm256_mul_ps(_mm256_loadu_ps(part + d), added);
    _mm256_storeu_ps(sum + d, _mm256_fmadd_ps(_mm256_loadu_ps(sum + d), old, values));
  }
}

void join_sink(float sink, std::int32_t head_dim, float* sum) {
  const float top = sink > sum[0] ? sink : sum[0];
  const __m256 old = exp(_mm256_set1_ps(sum[0] - top));
  const __m256 added = exp(_mm256_set1_ps(sink - top));
  sum[0] = top;
  sum[1] = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(sum[1]), _mm256_castps256_ps128(old), _mm256_castps256_ps128(added)));
  for (std::int32_t d = kPartHeader; d < kPartHeader + head_dim; d += 8)
    _mm256_storeu_ps(sum + d, _mm256_mul_ps(_mm256_loadu_ps(sum + d), old));
}

// Scores of queries [q, q + kQueries) with what they see of vectors [first, last) of the chunk at hand.
template <KvType kType, KeyForm kForm, int kQueries>
void score_all(const Tile& tile, int q, std::int32_t first, std::int32_t last) {
  constexpr int kKeys = kQueries >= 4 ? 2 : 4;
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const SeenVectors seen = seen_vectors<8>(tile, q, q + kQueries);
  first = seen.first > first ? seen.first : first;
  last = seen.last < last ? seen.last : last;
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    std::int32_t vector = first;
    for (; vector + kKeys <= last; vector += kKeys) score<kType, kForm, kQueries, kKeys>(tile, q, vector, d, d_end);
    for (; vector < last; ++vector) score<kType, kForm, kQueries, 1>(tile, q, vector, d, d_end);
  }
}

// The parts of queries [q, q + kQueries) of the chunk at hand, of their scores.
template <KvType kType, int kQueries>
void compute_parts(const Tile& tile, int q) {
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const GroupView<kQueries> view = view_of_group<kQueries>(tile, q);
  const SeenVectors seen = seen_vectors<8>(tile, q, q + kQueries);
  soften<kQueries>(tile, q);
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    const float* weights = tile.weights;
    if constexpr (kType == KvType::kInt8) {
      weights = tile.scaled;
      for (std::int32_t v = seen.first; v < seen.last; ++v) {
        const __m256 scale = _mm256_loadu_ps(tile.value_scales + d / kKvGroup * kChunkTokens + v * 8);
        for (int i = 0; i < kQueries; ++i) {
          const std::int64_t at = (q + i) * kChunkTokens + v * 8;
          _mm256_storeu_ps(tile.scaled + at, _mm256_mul_ps(_mm256_loadu_ps(tile.weights + at), scale));
        }
      }
    }
    const auto add = [&](auto together, int at, std::int32_t begin, std::int32_t end) {
      add_dims<kType, decltype(together)::kCount>(tile, at, weights, begin, end, d, d_end);
    };
    split_ranges(view.sinks, q, tile.chunk, add);
    split_ranges(view.window, q, tile.chunk, add);
  }
}

// The scales of the chunk's positions up to `end`, as floats.
void load_scales(const Tile& tile, std::int32_t end) {
  const KvLayer& kv = *tile.kv;
  const std::int32_t groups = kv_groups(kv.head_dim);
  for (std::int32_t t = tile.chunk; t < end; t += 8) {
    const std::byte* scales = head_bytes(tile, t) + kv.scale_offset + t % kv.block_tokens * 2;
    for (std::int32_t g = 0; g < groups; ++g, scales += kv.block_tokens * 2) {
      const auto load = [](const std::byte* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); };
      _mm256_storeu_ps(tile.key_scales + g * kChunkTokens + t - tile.chunk, load(scales));
      _mm256_storeu_ps(tile.value_scales + g * kChunkTokens + t - tile.chunk, load(scales + value_scale_step(kv)));
    }
  }
}

// Queries [first, last), as many at a time as fit: with two vectors each, six have 12 of the 16 registers for sums. use(Together<n>, q).
template <class Use>
void share_out(int first, int last, const Use& use) {
  split_queries<6, 4, 3, 2, 1>(first, last, use);
}

// The parts of queries [first, last) of a latent pool.
template <KvType kType>
void compute_latent(Tile& tile, int first, int last) {
  constexpr std::int32_t kAtOnce = kUnpackedTokens / 8;
  const SeenVectors seen = seen_vectors<8>(tile, first, last);
  for (std::int32_t v = seen.first; v < seen.last; v += kAtOnce) {
    const std::int32_t v_end = v + kAtOnce < seen.last ? v + kAtOnce : seen.last;
    unpack_keys<kType>(tile, v, v_end);
    share_out(first, last,
              [&](auto together, int q) { score_all<kType, KeyForm::kUnpacked, decltype(together)::kCount>(tile, q, v, v_end); });
  }
  share_out(first, last, [&](auto together, int q) { compute_parts<kType, decltype(together)::kCount>(tile, q); });
}

template <KvType kType>
void compute_all(Tile& tile, int first, int last) {
  const std::int32_t end = tile.position[last - 1] + 1;
  if constexpr (kType == KvType::kInt8) load_scales(tile, end < tile.chunk + kChunkTokens ? end : tile.chunk + kChunkTokens);
  if (tile.kv->latent) return compute_latent<kType>(tile, first, last);
  const std::int64_t bytes = kv_element_bytes(kType) * kv_pair(kType);
  for (std::int32_t v = 0; v < kVectors && tile.chunk + v * 8 < end; ++v) {
    const std::int32_t position = tile.chunk + v * 8;
    tile.keys[v] = head_bytes(tile, position) + position % tile.kv->block_tokens * bytes;
  }
  share_out(first, last, [&](auto together, int q) {
    score_all<kType, KeyForm::kTogether, decltype(together)::kCount>(tile, q, 0, kVectors);
    compute_parts<kType, decltype(together)::kCount>(tile, q);
  });
}

void compute_chunk(Tile& tile, int first, int last) {
  with_kv_type(tile.kv->type, [&]<KvType kType> { compute_all<kType>(tile, first, last); });
}

void finish(const float* sum, std::int32_t head_dim, float* out) {
  const __m256 inverse = _mm256_set1_ps(1.0F / sum[1]);
  for (std::int32_t d = 0; d < head_dim; d += 8)
    store_first(out + d, head_dim - d, _mm256_mul_ps(_mm256_loadu_ps(sum + kPartHeader + d), inverse));
}

struct Steps {
  using Tile = avx2::Tile;
  static constexpr auto compute = compute_chunk;
  static constexpr auto join = avx2::join;
  static constexpr auto join_sink = avx2::join_sink;
  static constexpr auto finish = avx2::finish;
};

}  // namespace

std::size_t attention_scratch_bytes(std::int32_t /*heads*/, std::int32_t head_dim, bool latent) noexcept {
  return tile_scratch_bytes(head_dim, latent);
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  attend_rows<Steps>(args, row_begin, row_end, kv_head_begin, kv_head_end);
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  attend_part<Steps>(args, row, kv_head, chunk, parts);
}

void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept {
  join_parts<Steps>(args, row, kv_head, parts, count, stride);
}

}  // namespace braid::kernels::avx2
