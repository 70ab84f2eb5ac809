// Attention as scalar/attention.cpp defines it, for up to kQueryTile query vectors in one pass over keys and values: the heads that
// share a KV head, and the next rows of the same sequence. A vector is 16 positions for scores (keys are stored transposed) and 16
// dimensions for the weighted values, so neither needs a sum across lanes. Limit: the multiply-add; 73% of its peak measured on Zen
// 4 at 4,096 positions (perf/README.md).
#include <kernels/avx512/simd.h>
#include <kernels/avx512/tier.h>

namespace braid::kernels::avx512 {
namespace {

constexpr std::int32_t kVectors = kChunkTokens / 16;

std::int64_t padded(std::int32_t head_dim) { return (head_dim + 15) / 16 * 16; }

// What the queries of a tile share.
struct Tile {
  const KvLayer* kv = nullptr;
  const std::int32_t* blocks = nullptr;
  std::int32_t head = 0;  // KV head
  int count = 0;
  std::int32_t tokens[kQueryTile] = {};  // positions that each query attends to, never decreasing
  float* acc[kQueryTile] = {};           // [head_dim]
  float* queries = nullptr;              // [head_dim, kQueryTile], scaled
  float* weights = nullptr;              // [kQueryTile, kChunkTokens]
  float top[kQueryTile] = {};
  float total[kQueryTile] = {};
};

template <KvType kType>
constexpr std::int64_t kBytes = kType == KvType::kF32 ? 4 : 2;

const std::byte* head_bytes(const Tile& tile, std::int32_t position) {
  const KvLayer& kv = *tile.kv;
  return kv.base + static_cast<std::size_t>(tile.blocks[position / kv.block_tokens]) * kv.block_stride +
         static_cast<std::size_t>(tile.head) * kv.head_stride;
}

// The keys of 16 positions for one dimension lie together, or, in blocks of 8, in two places.
struct KeyVector {
  const std::byte* low;
  const std::byte* high;
};

template <KvType kType, bool kHalves>
inline __m512 load_keys(const KeyVector& keys, std::int64_t offset) {
  if constexpr (kType == KvType::kF32) {
    if constexpr (!kHalves) return _mm512_loadu_ps(keys.low + offset);
    const __m256 low = _mm256_loadu_ps(reinterpret_cast<const float*>(keys.low + offset));
    const __m256 high = _mm256_loadu_ps(reinterpret_cast<const float*>(keys.high + offset));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  } else {
    if constexpr (!kHalves) return load_halves(keys.low + offset);
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(keys.low + offset));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(keys.high + offset));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  }
}

// Scores of queries [q, q + kQueries) with the positions of kKeys vectors.
template <KvType kType, bool kHalves, int kQueries, int kKeys>
void score(const Tile& tile, int q, const KeyVector* keys, std::int32_t vector) {
  const std::int64_t step = tile.kv->block_tokens * kBytes<kType>;
  const std::int32_t head_dim = tile.kv->head_dim;
  KeyVector at[kKeys];
#pragma GCC unroll 8
  for (int v = 0; v < kKeys; ++v) at[v] = keys[vector + v];
  const float* query = tile.queries + q;
  __m512 sum[kQueries][kKeys];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  for (std::int32_t d = 0; d < head_dim; ++d) {
    __m512 key[kKeys];
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) key[v] = load_keys<kType, kHalves>(at[v], d * step);
#pragma GCC unroll 8
    for (int i = 0; i < kQueries; ++i) {
      const __m512 scaled = _mm512_set1_ps(query[d * kQueryTile + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm512_fmadd_ps(scaled, key[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) _mm512_storeu_ps(tile.weights + (q + i) * kChunkTokens + (vector + v) * 16, sum[i][v]);
  }
}

template <KvType kType>
inline __m512 load_values(__mmask16 mask, const std::byte* from) {
  if constexpr (kType == KvType::kF32) return _mm512_maskz_loadu_ps(mask, from);
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

// Adds weight * value of positions [begin, end), of the chunk at `chunk`, to kDims vectors of the accumulators from dimension d on.
template <KvType kType, int kQueries, int kDims>
void add_values(const Tile& tile, int q, std::int32_t chunk, std::int32_t begin, std::int32_t end, std::int32_t d) {
  const KvLayer& kv = *tile.kv;
  const std::int64_t step = kv.head_dim * kBytes<kType>;
  __mmask16 mask[kDims];
#pragma GCC unroll 8
  for (int v = 0; v < kDims; ++v) mask[v] = first_lanes(kv.head_dim - d - v * 16);
  const float* weights = tile.weights + q * kChunkTokens - chunk;
  __m512 acc[kQueries][kDims];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) acc[i][v] = _mm512_maskz_loadu_ps(mask[v], tile.acc[q + i] + d + v * 16);
  }
  for (std::int32_t t = begin; t < end;) {
    const std::int32_t slot = t % kv.block_tokens;
    const std::int32_t block_end = t - slot + kv.block_tokens < end ? t - slot + kv.block_tokens : end;
    const std::byte* value = head_bytes(tile, t) + kv.value_offset + slot * step + d * kBytes<kType>;
    for (; t < block_end; ++t, value += step) {
      __m512 values[kDims];
#pragma GCC unroll 8
      for (int v = 0; v < kDims; ++v) values[v] = load_values<kType>(mask[v], value + v * 16 * kBytes<kType>);
#pragma GCC unroll 8
      for (int i = 0; i < kQueries; ++i) {
        const __m512 weight = _mm512_set1_ps(weights[i * kChunkTokens + t]);
#pragma GCC unroll 8
        for (int v = 0; v < kDims; ++v) acc[i][v] = _mm512_fmadd_ps(weight, values[v], acc[i][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) _mm512_mask_storeu_ps(tile.acc[q + i] + d + v * 16, mask[v], acc[i][v]);
  }
}

template <KvType kType, int kQueries>
void add_all_values(const Tile& tile, int q, std::int32_t chunk, std::int32_t begin, std::int32_t end) {
  constexpr int kDims = kQueries == 8 ? 2 : 4;
  std::int32_t d = 0;
  for (; tile.kv->head_dim - d > (kDims - 1) * 16; d += kDims * 16)
    add_values<kType, kQueries, kDims>(tile, q, chunk, begin, end, d);
  for (; d < tile.kv->head_dim; d += 16) add_values<kType, kQueries, 1>(tile, q, chunk, begin, end, d);
}

// Scores become weights; the running top and total move on, and the accumulator decays.
void soften(Tile& tile, int q, std::int32_t chunk) {
  float* weights = tile.weights + q * kChunkTokens;
  const std::int32_t count = tile.tokens[q] - chunk < kChunkTokens ? tile.tokens[q] - chunk : kChunkTokens;
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 largest = lowest;
  for (std::int32_t i = 0; i < count; i += 16) {
    largest = _mm512_mask_max_ps(largest, first_lanes(count - i), _mm512_loadu_ps(weights + i), largest);
  }
  const float before = chunk == 0 ? -__builtin_inff() : tile.top[q];
  const float found = _mm512_reduce_max_ps(largest);
  const float top = found > before ? found : before;
  __m512 sums = _mm512_setzero_ps();
  for (std::int32_t i = 0; i < count; i += 16) {
    const __m512 weight = exp(_mm512_sub_ps(_mm512_loadu_ps(weights + i), _mm512_set1_ps(top)));
    _mm512_storeu_ps(weights + i, weight);
    sums = _mm512_mask_add_ps(sums, first_lanes(count - i), sums, weight);
  }
  const float decay = chunk == 0 ? 0.0F : _mm512_cvtss_f32(exp(_mm512_set1_ps(before - top)));
  tile.total[q] = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(tile.total[q]), _mm_set_ss(decay), _mm_set_ss(lane_tree(sums))));
  tile.top[q] = top;
  for (std::int32_t d = 0; d < tile.kv->head_dim; d += 16) {
    const __m512 acc = _mm512_loadu_ps(tile.acc[q] + d);
    _mm512_storeu_ps(tile.acc[q] + d, _mm512_mul_ps(acc, _mm512_set1_ps(decay)));
  }
}

template <KvType kType, bool kHalves, int kQueries>
void attend_chunk(Tile& tile, int q, std::int32_t chunk, const KeyVector* keys) {
  constexpr int kKeys = kQueries == 8 ? 2 : 4;
  const std::int32_t shortest = tile.tokens[q] - chunk < kChunkTokens ? tile.tokens[q] : chunk + kChunkTokens;
  const std::int32_t last = tile.tokens[q + kQueries - 1];
  const std::int32_t longest = last - chunk < kChunkTokens ? last : chunk + kChunkTokens;
  const std::int32_t vectors = (longest - chunk + 15) / 16;
  std::int32_t vector = 0;
  for (; vector + kKeys <= vectors; vector += kKeys) score<kType, kHalves, kQueries, kKeys>(tile, q, keys, vector);
  for (; vector < vectors; ++vector) score<kType, kHalves, kQueries, 1>(tile, q, keys, vector);
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) soften(tile, q + i, chunk);
  add_all_values<kType, kQueries>(tile, q, chunk, chunk, shortest);
  // Later rows of the sequence see a few positions more. The earlier ones must not meet those values, not even with weight zero.
#pragma GCC unroll 8
  for (int i = 0; i < kQueries && shortest < longest; ++i) {
    const std::int32_t end = tile.tokens[q + i] < longest ? tile.tokens[q + i] : longest;
    if (end > shortest) add_all_values<kType, 1>(tile, q + i, chunk, shortest, end);
  }
}

// One chunk for the queries from `q` on, as many at a time as fit.
template <KvType kType, bool kHalves>
void attend_queries(Tile& tile, int q, std::int32_t chunk, const KeyVector* keys) {
  while (q < tile.count) {
    const int left = tile.count - q;
    if (left >= 8) {
      attend_chunk<kType, kHalves, 8>(tile, q, chunk, keys);
      q += 8;
    } else if (left >= 4) {
      attend_chunk<kType, kHalves, 4>(tile, q, chunk, keys);
      q += 4;
    } else if (left >= 2) {
      attend_chunk<kType, kHalves, 2>(tile, q, chunk, keys);
      q += 2;
    } else {
      attend_chunk<kType, kHalves, 1>(tile, q, chunk, keys);
      q += 1;
    }
  }
}

void attend(Tile& tile) {
  const KvLayer& kv = *tile.kv;
  const std::int32_t end = tile.tokens[tile.count - 1];
  const bool halves = kv.block_tokens < 16;
  const std::int64_t element = kv.type == KvType::kF32 ? 4 : 2;
  for (std::int32_t chunk = 0; chunk < end; chunk += kChunkTokens) {
    KeyVector keys[kVectors];
    for (std::int32_t v = 0; v < kVectors && chunk + v * 16 < end; ++v) {
      const std::int32_t position = chunk + v * 16;
      keys[v].low = head_bytes(tile, position) + position % kv.block_tokens * element;
      // Past the sequence there may be no block; those lanes are not used.
      keys[v].high = halves && position + 8 < end ? head_bytes(tile, position + 8) : keys[v].low;
    }
    int first = 0;
    while (tile.tokens[first] <= chunk) ++first;
    if (kv.type == KvType::kF32) {
      halves ? attend_queries<KvType::kF32, true>(tile, first, chunk, keys)
             : attend_queries<KvType::kF32, false>(tile, first, chunk, keys);
    } else {
      halves ? attend_queries<KvType::kF16, true>(tile, first, chunk, keys)
             : attend_queries<KvType::kF16, false>(tile, first, chunk, keys);
    }
  }
}

// Loads queries [first, first + tile.count) of the rows from `row` on, in the order row, head of the KV head's group.
void start_tile(const AttentionArgs& args, std::int64_t row, std::int64_t first, Tile& tile) {
  const KvLayer& kv = *args.kv;
  const std::int32_t group = args.heads / kv.kv_heads;
  for (int q = 0; q < tile.count; ++q) {
    const std::int64_t r = row + (first + q) / group;
    const float* query = args.queries + r * args.query_stride + (tile.head * group + (first + q) % group) * kv.head_dim;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) tile.queries[d * kQueryTile + q] = query[d] * args.scale;
    for (std::int32_t d = 0; d < kv.head_dim; d += 16) _mm512_storeu_ps(tile.acc[q] + d, _mm512_setzero_ps());
    tile.tokens[q] = args.rows[r].position + 1;
    tile.total[q] = 0.0F;
  }
}

void finish_tile(const AttentionArgs& args, std::int64_t row, std::int64_t first, const Tile& tile) {
  const KvLayer& kv = *args.kv;
  const std::int32_t group = args.heads / kv.kv_heads;
  for (int q = 0; q < tile.count; ++q) {
    const std::int64_t r = row + (first + q) / group;
    float* out = args.out + r * args.out_stride + (tile.head * group + (first + q) % group) * kv.head_dim;
    const __m512 inverse = _mm512_set1_ps(1.0F / tile.total[q]);
    for (std::int32_t d = 0; d < kv.head_dim; d += 16) {
      const __m512 acc = _mm512_loadu_ps(tile.acc[q] + d);
      _mm512_mask_storeu_ps(out + d, first_lanes(kv.head_dim - d), _mm512_mul_ps(acc, inverse));
    }
  }
}

}  // namespace

void kv_store(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) noexcept {
  for (std::int32_t h = 0; h < kv.kv_heads; ++h, keys += kv.head_dim, values += kv.head_dim) {
    std::byte* head = kv.base + static_cast<std::size_t>(block) * kv.block_stride + static_cast<std::size_t>(h) * kv.head_stride;
    std::byte* value_row = head + kv.value_offset;
    for (std::int32_t d = 0; d < kv.head_dim; d += 16) {
      const __mmask16 mask = first_lanes(kv.head_dim - d);
      const __m512 key = _mm512_maskz_loadu_ps(mask, keys + d);
      const __m512 value = _mm512_maskz_loadu_ps(mask, values + d);
      const std::int32_t count = kv.head_dim - d < 16 ? kv.head_dim - d : 16;
      const std::int64_t row = std::int64_t{d} * kv.block_tokens + slot;
      if (kv.type == KvType::kF32) {
        _mm512_mask_storeu_ps(value_row + (std::int64_t{slot} * kv.head_dim + d) * 4, mask, value);
        for (std::int32_t i = 0; i < count; ++i) __builtin_memcpy(head + (row + i * kv.block_tokens) * 4, keys + d + i, 4);
      } else {
        std::uint16_t rounded[16];
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(rounded), _mm512_cvtps_ph(key, _MM_FROUND_TO_NEAREST_INT));
        for (std::int32_t i = 0; i < count; ++i) __builtin_memcpy(head + (row + i * kv.block_tokens) * 2, rounded + i, 2);
        _mm256_mask_storeu_epi16(value_row + (std::int64_t{slot} * kv.head_dim + d) * 2, mask,
                                 _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
      }
    }
  }
}

// Queries, accumulators and weights of one tile.
std::size_t attention_scratch_bytes(std::int32_t /*heads*/, std::int32_t head_dim) noexcept {
  return static_cast<std::size_t>(kQueryTile * (2 * padded(head_dim) + kChunkTokens)) * sizeof(float);
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  const KvLayer& kv = *args.kv;
  const std::int64_t width = padded(kv.head_dim);
  Tile tile;
  tile.kv = &kv;
  tile.weights = reinterpret_cast<float*>(args.scratch);
  tile.queries = tile.weights + kQueryTile * kChunkTokens;
  for (int q = 0; q < kQueryTile; ++q) tile.acc[q] = tile.queries + (kQueryTile + q) * width;
  for (tile.head = kv_head_begin; tile.head < kv_head_end; ++tile.head) {
    for (std::int64_t row = row_begin; row < row_end;) {
      std::int64_t end = row + 1;  // rows of one sequence
      while (end < row_end && args.rows[end].blocks == args.rows[row].blocks) ++end;
      tile.blocks = args.rows[row].blocks;
      const std::int64_t queries = (end - row) * (args.heads / kv.kv_heads);
      for (std::int64_t first = 0; first < queries; first += kQueryTile) {
        tile.count = static_cast<int>(queries - first < kQueryTile ? queries - first : kQueryTile);
        start_tile(args, row, first, tile);
        attend(tile);
        finish_tile(args, row, first, tile);
      }
      row = end;
    }
  }
}

}  // namespace braid::kernels::avx512
