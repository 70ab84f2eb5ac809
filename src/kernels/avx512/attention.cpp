// Attention as scalar/attention.cpp defines it, for up to kQueryTile query vectors in one pass over keys and values: the heads that
// share a KV head, and the next rows of the same sequence. A vector is 16 positions for scores (keys are stored transposed) and 16
// dimensions for the weighted values, so neither needs a sum across lanes. Limit: the multiply-add
// (perf/README.md has the share reached). A block-wise layout defeats the hardware's prefetch, so what comes next is fetched by hand.
#include "kernels/avx512/attention_part.h"
#include "kernels/avx512/kv_load.h"
#include "kernels/avx512/latent_keys.h"
#include "kernels/avx512/tier.h"
#include "kernels/query_tile.h"

namespace braid::kernels::avx512 {
namespace {

// The keys of 16 positions for one dimension lie together, or, in blocks of 8, in two places.
struct KeyVector {
  const std::byte* low;
  const std::byte* high;
};

using Tile = QueryTile<KeyVector, kVectors>;

// Scores of queries [q, q + kQueries) with the positions of kKeys vectors, over dimensions [begin, end): a group of kInt8, else
// all.
template <KvType kType, KeyForm kForm, int kQueries, int kKeys>
void score(const Tile& tile, int q, std::int32_t vector, std::int32_t begin, std::int32_t end) {
  constexpr KvType kKeyType = kForm == KeyForm::kUnpacked ? KvType::kF32 : kType;
  const std::int64_t step = kForm == KeyForm::kUnpacked ? 64 : tile.kv->block_tokens * kv_element_bytes(kType);
  KeyVector at[kKeys];
#pragma GCC unroll 12
  for (int v = 0; v < kKeys; ++v) at[v] = tile.keys[vector + v];
  const float* query = tile.queries + q;
  __m512 sum[kQueries][kKeys];
#pragma GCC unroll 12
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  const std::int64_t values = static_cast<std::int64_t>(tile.kv->value_offset);
  for (std::int32_t d = begin; d < end; ++d) {
    // The block's values come next, and lie just as far in.
#pragma GCC unroll 12
    for (int v = 0; v < kKeys && kForm != KeyForm::kUnpacked; ++v)
      _mm_prefetch(reinterpret_cast<const char*>(at[v].low + values + d * step), _MM_HINT_T1);
    const bool odd = d % kv_pair(kKeyType) != 0;
    const std::int64_t offset = (d - odd) * step;
    __m512 key[kKeys];
#pragma GCC unroll 12
    for (int v = 0; v < kKeys; ++v) {
      if constexpr (kForm == KeyForm::kHalves) {
        key[v] = load_kv<kKeyType>(at[v].low + offset, at[v].high + offset, odd);
      } else {
        key[v] = load_kv<kKeyType>(at[v].low + offset, odd);
      }
    }
#pragma GCC unroll 12
    for (int i = 0; i < kQueries; ++i) {
      const __m512 scaled = _mm512_set1_ps(query[d * kQueryTile + i]);
#pragma GCC unroll 12
      for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm512_fmadd_ps(scaled, key[v], sum[i][v]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kKeys; ++v) {
      float* out = tile.weights + (q + i) * kChunkTokens + (vector + v) * 16;
      if constexpr (kType == KvType::kInt8) {
        const __m512 scale = _mm512_loadu_ps(tile.key_scales + begin / kKvGroup * kChunkTokens + (vector + v) * 16);
        sum[i][v] = begin == 0 ? _mm512_mul_ps(sum[i][v], scale) : _mm512_fmadd_ps(sum[i][v], scale, _mm512_loadu_ps(out));
      }
      _mm512_storeu_ps(out, sum[i][v]);
    }
  }
}

// Adds weight * value of positions [begin, end) to kDims vectors of the parts from dimension d on; `weights` are of the tile's
// form.
template <KvType kType, int kQueries, int kDims>
void add_values(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d) {
  const KvLayer& kv = *tile.kv;
  constexpr std::int64_t kBytes = kv_element_bytes(kType);
  constexpr std::int64_t kPair = kv_pair(kType);
  __mmask16 mask[kDims];
#pragma GCC unroll 12
  for (int v = 0; v < kDims; ++v) mask[v] = first_lanes(kv.head_dim - d - v * 16);
  weights += q * kChunkTokens - tile.chunk;
  __m512 acc[kQueries][kDims];
#pragma GCC unroll 12
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kDims; ++v) acc[i][v] = _mm512_loadu_ps(tile.part[q + i] + kPartHeader + d + v * 16);
  }
  for (std::int32_t t = begin; t < end;) {
    const std::int32_t slot = t % kv.block_tokens;
    const std::int32_t block_end = t - slot + kv.block_tokens < end ? t - slot + kv.block_tokens : end;
    const std::byte* value = head_bytes(tile, t) + kv.value_offset + value_element(kType, kv.head_dim, slot - slot % kPair, d) * kBytes;
    const std::byte* ahead = keys_ahead(tile, t) + (slot * kv.head_dim + d) * kBytes;
    for (; t < block_end; ++t, ahead += kv.head_dim * kBytes) {
      for (int line = 0; line < kDims * 16 * kBytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(ahead + line), _MM_HINT_T1);
      const bool odd = t % kPair != 0;
      __m512 values[kDims];
#pragma GCC unroll 12
      for (int v = 0; v < kDims; ++v) values[v] = load_kv<kType>(mask[v], value + v * 16 * kPair * kBytes, odd);
      if (kPair == 1 || odd) value += kPair * kv.head_dim * kBytes;
#pragma GCC unroll 12
      for (int i = 0; i < kQueries; ++i) {
        const __m512 weight = _mm512_set1_ps(weights[i * kChunkTokens + t]);
#pragma GCC unroll 12
        for (int v = 0; v < kDims; ++v) acc[i][v] = _mm512_fmadd_ps(weight, values[v], acc[i][v]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 12
    for (int v = 0; v < kDims; ++v) _mm512_storeu_ps(tile.part[q + i] + kPartHeader + d + v * 16, acc[i][v]);
  }
}

template <KvType kType, int kQueries>
void add_dims(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d, std::int32_t d_end) {
  constexpr int kDims = kQueries >= 8 ? 2 : 4;
  if (begin >= end) return;
  for (; d_end - d > (kDims - 1) * 16; d += kDims * 16) add_values<kType, kQueries, kDims>(tile, q, weights, begin, end, d);
  for (; d < d_end; d += 16) add_values<kType, kQueries, 1>(tile, q, weights, begin, end, d);
}

// The largest score that the query sees. kWhole: it sees the whole chunk, and no mask is needed.
template <bool kWhole>
float top_of(const SeenLanes& seen, const VectorRange& range, const float* scores) {
  __m512 largest = _mm512_set1_ps(-__builtin_inff());
  for (std::int32_t v = range.first; v < range.last; ++v) {
    const __m512 own = _mm512_loadu_ps(scores + v * 16);
    largest = kWhole ? _mm512_max_ps(own, largest) : _mm512_mask_max_ps(largest, seen.of[v], own, largest);
  }
  return _mm512_reduce_max_ps(largest);
}

// Scores become weights; returns the sum of those that the query sees.
template <bool kWhole>
float weigh(const SeenLanes& seen, const VectorRange& range, float top, float* scores) {
  __m512 sums = _mm512_setzero_ps();
  for (std::int32_t v = range.first; v < range.last; ++v) {
    const __m512 weight = exp(_mm512_sub_ps(_mm512_loadu_ps(scores + v * 16), _mm512_set1_ps(top)));
    _mm512_storeu_ps(scores + v * 16, weight);
    sums = kWhole ? _mm512_add_ps(sums, weight) : _mm512_mask_add_ps(sums, seen.of[v], sums, weight);
  }
  return lane_tree(sums);
}

// Scores become weights, and the parts get their tops and totals, and no values yet. All tops come first, because each is a long chain of
// instructions.
template <int kQueries>
void soften(const Tile& tile, int q) {
  SeenLanes seen[kQueries];
  VectorRange range[kQueries];
  for (int i = 0; i < kQueries; ++i) {
    const ChunkView& view = tile.view[q + i];
    range[i] = vectors_of(view, tile.chunk);
    float* scores = tile.weights + (q + i) * kChunkTokens;
    if (tile.args->score_cap != 0.0F) cap_scores(tile.args->score_cap, range[i], scores);
    if (tile.args->slopes != nullptr) slope_scores(tile.slope[q + i], tile.chunk - tile.position[q + i], range[i], scores);
    const bool whole = sees_all(view, tile.chunk);
    if (!whole) seen[i] = seen_lanes(view, tile.chunk);
    tile.part[q + i][0] = whole ? top_of<true>(seen[i], range[i], scores) : top_of<false>(seen[i], range[i], scores);
  }
  for (int i = 0; i < kQueries; ++i) {
    float* part = tile.part[q + i];
    float* scores = tile.weights + (q + i) * kChunkTokens;
    const bool whole = sees_all(tile.view[q + i], tile.chunk);
    part[1] = whole ? weigh<true>(seen[i], range[i], part[0], scores) : weigh<false>(seen[i], range[i], part[0], scores);
    for (std::int32_t d = 0; d < tile.kv->head_dim; d += 16) _mm512_storeu_ps(part + kPartHeader + d, _mm512_setzero_ps());
  }
}

// Scores of queries [q, q + kQueries) with what they see of vectors [first, last) of the chunk at hand.
template <KvType kType, KeyForm kForm, int kQueries>
void score_all(const Tile& tile, int q, std::int32_t first, std::int32_t last) {
  constexpr int kKeys = kQueries >= 8 ? 2 : 4;
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  const SeenVectors seen = seen_vectors<16>(tile, q, q + kQueries);
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
  const SeenVectors seen = seen_vectors<16>(tile, q, q + kQueries);
  soften<kQueries>(tile, q);
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    const float* weights = tile.weights;
    if constexpr (kType == KvType::kInt8) {
      weights = tile.scaled;
      for (std::int32_t v = seen.first; v < seen.last; ++v) {
        const __m512 scale = _mm512_loadu_ps(tile.value_scales + d / kKvGroup * kChunkTokens + v * 16);
        for (int i = 0; i < kQueries; ++i) {
          const std::int64_t at = (q + i) * kChunkTokens + v * 16;
          _mm512_storeu_ps(tile.scaled + at, _mm512_mul_ps(_mm512_loadu_ps(tile.weights + at), scale));
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

// Queries [first, last), as many at a time as fit: with two vectors each, twelve have 24 sums, and three registers more hold what these
// are made of. use(Together<n>, q).
template <class Use>
void share_out(int first, int last, const Use& use) {
  split_queries<12, 8, 4, 3, 2, 1>(first, last, use);
}

// The parts of queries [first, last) of a latent pool.
template <KvType kType>
void compute_latent(Tile& tile, int first, int last, std::int32_t end) {
  constexpr std::int32_t kAtOnce = kUnpackedTokens / 16;
  const SeenVectors seen = seen_vectors<16>(tile, first, last);
  for (std::int32_t v = seen.first; v < seen.last; v += kAtOnce) {
    const std::int32_t v_end = v + kAtOnce < seen.last ? v + kAtOnce : seen.last;
    unpack_keys<kType>(tile, v, v_end, end);
    share_out(first, last,
              [&](auto together, int q) { score_all<kType, KeyForm::kUnpacked, decltype(together)::kCount>(tile, q, v, v_end); });
  }
  share_out(first, last, [&](auto together, int q) { compute_parts<kType, decltype(together)::kCount>(tile, q); });
}

template <KvType kType, KeyForm kForm>
void compute_plain(Tile& tile, int first, int last, std::int32_t end) {
  const std::int64_t bytes = kv_element_bytes(kType) * kv_pair(kType);
  for (std::int32_t v = 0; v < kVectors && tile.chunk + v * 16 < end; ++v) {
    const std::int32_t position = tile.chunk + v * 16;
    tile.keys[v].low = head_bytes(tile, position) + position % tile.kv->block_tokens * bytes;
    // Past the sequence there may be no block; those lanes are not used.
    tile.keys[v].high = kForm == KeyForm::kHalves && position + 8 < end ? head_bytes(tile, position + 8) : tile.keys[v].low;
  }
  share_out(first, last, [&](auto together, int q) {
    score_all<kType, kForm, decltype(together)::kCount>(tile, q, 0, kVectors);
    compute_parts<kType, decltype(together)::kCount>(tile, q);
  });
}

template <KvType kType>
void compute_all(Tile& tile, int first, int last) {
  const std::int32_t end = tile.position[last - 1] + 1;
  if constexpr (kType == KvType::kInt8) load_scales(*tile.kv, tile.blocks, tile.head, tile.chunk, end, tile.key_scales, tile.value_scales);
  if (tile.kv->latent) return compute_latent<kType>(tile, first, last, end);
  if (tile.kv->block_tokens < 16) return compute_plain<kType, KeyForm::kHalves>(tile, first, last, end);
  compute_plain<kType, KeyForm::kTogether>(tile, first, last, end);
}

void compute_chunk(Tile& tile, int first, int last) {
  with_kv_type(tile.kv->type, [&]<KvType kType> { compute_all<kType>(tile, first, last); });
}

struct Steps {
  using Tile = avx512::Tile;
  static constexpr auto compute = compute_chunk;
  static constexpr auto join = avx512::join;
  static constexpr auto join_sink = avx512::join_sink;
  static constexpr auto finish = avx512::finish;
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

}  // namespace braid::kernels::avx512
