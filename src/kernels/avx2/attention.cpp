// Attention as scalar/attention.cpp defines it, for up to kQueryTile query vectors in one pass over keys and values: the heads that
// share a KV head, and the next rows of the same sequence. A vector is 8 positions for scores (keys are stored transposed) and 8
// dimensions for the weighted values, so neither needs a sum across lanes.
#include <kernels/avx2/simd.h>
#include <kernels/avx2/tier.h>

namespace braid::kernels::avx2 {
namespace {

constexpr std::int32_t kVectors = kChunkTokens / 8;

std::int64_t padded(std::int32_t head_dim) { return (head_dim + 7) / 8 * 8; }

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

template <KvType kType>
inline __m256 load_vector(const std::byte* from) {
  if constexpr (kType == KvType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  return load_halves(from);
}

// Scores of queries [q, q + kQueries) with the positions of kKeys vectors.
template <KvType kType, int kQueries, int kKeys>
void score(const Tile& tile, int q, const std::byte* const* keys, std::int32_t vector) {
  const std::int64_t step = tile.kv->block_tokens * kBytes<kType>;
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::byte* at[kKeys];
#pragma GCC unroll 8
  for (int v = 0; v < kKeys; ++v) at[v] = keys[vector + v];
  const float* query = tile.queries + q;
  __m256 sum[kQueries][kKeys];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm256_setzero_ps();
  }
  for (std::int32_t d = 0; d < head_dim; ++d) {
    __m256 key[kKeys];
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) key[v] = load_vector<kType>(at[v] + d * step);
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
    for (int v = 0; v < kKeys; ++v) _mm256_storeu_ps(tile.weights + (q + i) * kChunkTokens + (vector + v) * 8, sum[i][v]);
  }
}

// `count` values, fewer than 8 at the end of a head.
template <KvType kType, bool kPartial>
inline __m256 load_values(const std::byte* from, std::int64_t count) {
  if constexpr (!kPartial) return load_vector<kType>(from);
  if constexpr (kType == KvType::kF32) return _mm256_maskload_ps(reinterpret_cast<const float*>(from), first_lanes(count));
  std::uint16_t values[8] = {};
  __builtin_memcpy(values, from, static_cast<std::size_t>(count) * 2);
  return load_halves(values);
}

// Adds weight * value of positions [begin, end), of the chunk at `chunk`, to kDims vectors of the accumulators from dimension d on.
template <KvType kType, int kQueries, int kDims, bool kPartial>
void add_values(const Tile& tile, int q, std::int32_t chunk, std::int32_t begin, std::int32_t end, std::int32_t d) {
  const KvLayer& kv = *tile.kv;
  const std::int64_t step = kv.head_dim * kBytes<kType>;
  const std::int64_t left = kv.head_dim - d;
  const float* weights = tile.weights + q * kChunkTokens - chunk;
  __m256 acc[kQueries][kDims];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) acc[i][v] = _mm256_loadu_ps(tile.acc[q + i] + d + v * 8);
  }
  for (std::int32_t t = begin; t < end;) {
    const std::int32_t slot = t % kv.block_tokens;
    const std::int32_t block_end = t - slot + kv.block_tokens < end ? t - slot + kv.block_tokens : end;
    const std::byte* value = head_bytes(tile, t) + kv.value_offset + slot * step + d * kBytes<kType>;
    for (; t < block_end; ++t, value += step) {
      __m256 values[kDims];
#pragma GCC unroll 8
      for (int v = 0; v < kDims; ++v) values[v] = load_values<kType, kPartial>(value + v * 8 * kBytes<kType>, left);
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
    for (int v = 0; v < kDims; ++v) _mm256_storeu_ps(tile.acc[q + i] + d + v * 8, acc[i][v]);
  }
}

template <KvType kType, int kQueries>
void add_all_values(const Tile& tile, int q, std::int32_t chunk, std::int32_t begin, std::int32_t end) {
  constexpr int kDims = kQueries == 4 ? 2 : 4;
  const std::int32_t head_dim = tile.kv->head_dim;
  std::int32_t d = 0;
  for (; d + kDims * 8 <= head_dim; d += kDims * 8) add_values<kType, kQueries, kDims, false>(tile, q, chunk, begin, end, d);
  for (; d + 8 <= head_dim; d += 8) add_values<kType, kQueries, 1, false>(tile, q, chunk, begin, end, d);
  if (d < head_dim) add_values<kType, kQueries, 1, true>(tile, q, chunk, begin, end, d);
}

// Scores become weights; the running top and total move on, and the accumulator decays.
void soften(Tile& tile, int q, std::int32_t chunk) {
  float* weights = tile.weights + q * kChunkTokens;
  const std::int32_t count = tile.tokens[q] - chunk < kChunkTokens ? tile.tokens[q] - chunk : kChunkTokens;
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  __m256 largest = lowest;
  for (std::int32_t i = 0; i < count; i += 8) {
    const __m256 used = _mm256_castsi256_ps(first_lanes(count - i));
    largest = _mm256_max_ps(_mm256_blendv_ps(lowest, _mm256_loadu_ps(weights + i), used), largest);
  }
  const float before = chunk == 0 ? -__builtin_inff() : tile.top[q];
  const float found = largest_lane(largest);
  const float top = found > before ? found : before;
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (std::int32_t i = 0; i < count; i += 8) {
    const __m256 weight = exp(_mm256_sub_ps(_mm256_loadu_ps(weights + i), _mm256_set1_ps(top)));
    _mm256_storeu_ps(weights + i, weight);
    __m256& sum = sums[i / 8 % 2];
    sum = _mm256_add_ps(sum, _mm256_and_ps(weight, _mm256_castsi256_ps(first_lanes(count - i))));
  }
  const float decay = chunk == 0 ? 0.0F : _mm256_cvtss_f32(exp(_mm256_set1_ps(before - top)));
  const __m128 total = _mm_fmadd_ss(_mm_set_ss(tile.total[q]), _mm_set_ss(decay), _mm_set_ss(lane_tree(sums[0], sums[1])));
  tile.total[q] = _mm_cvtss_f32(total);
  tile.top[q] = top;
  for (std::int32_t d = 0; d < tile.kv->head_dim; d += 8) {
    const __m256 acc = _mm256_loadu_ps(tile.acc[q] + d);
    _mm256_storeu_ps(tile.acc[q] + d, _mm256_mul_ps(acc, _mm256_set1_ps(decay)));
  }
}

template <KvType kType, int kQueries>
void attend_chunk(Tile& tile, int q, std::int32_t chunk, const std::byte* const* keys) {
  constexpr int kKeys = kQueries == 4 ? 2 : 4;
  const std::int32_t shortest = tile.tokens[q] - chunk < kChunkTokens ? tile.tokens[q] : chunk + kChunkTokens;
  const std::int32_t last = tile.tokens[q + kQueries - 1];
  const std::int32_t longest = last - chunk < kChunkTokens ? last : chunk + kChunkTokens;
  const std::int32_t vectors = (longest - chunk + 7) / 8;
  std::int32_t vector = 0;
  for (; vector + kKeys <= vectors; vector += kKeys) score<kType, kQueries, kKeys>(tile, q, keys, vector);
  for (; vector < vectors; ++vector) score<kType, kQueries, 1>(tile, q, keys, vector);
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
template <KvType kType>
void attend_queries(Tile& tile, int q, std::int32_t chunk, const std::byte* const* keys) {
  while (q < tile.count) {
    const int left = tile.count - q;
    if (left >= 4) {
      attend_chunk<kType, 4>(tile, q, chunk, keys);
      q += 4;
    } else if (left >= 2) {
      attend_chunk<kType, 2>(tile, q, chunk, keys);
      q += 2;
    } else {
      attend_chunk<kType, 1>(tile, q, chunk, keys);
      q += 1;
    }
  }
}

void attend(Tile& tile) {
  const KvLayer& kv = *tile.kv;
  const std::int32_t end = tile.tokens[tile.count - 1];
  const std::int64_t element = kv.type == KvType::kF32 ? 4 : 2;
  for (std::int32_t chunk = 0; chunk < end; chunk += kChunkTokens) {
    const std::byte* keys[kVectors];
    for (std::int32_t v = 0; v < kVectors && chunk + v * 8 < end; ++v) {
      const std::int32_t position = chunk + v * 8;
      keys[v] = head_bytes(tile, position) + position % kv.block_tokens * element;
    }
    int first = 0;
    while (tile.tokens[first] <= chunk) ++first;
    if (kv.type == KvType::kF32) {
      attend_queries<KvType::kF32>(tile, first, chunk, keys);
    } else {
      attend_queries<KvType::kF16>(tile, first, chunk, keys);
    }
  }
}

// Up to 8 floats in the pool's type.
void round_to(KvType type, const float* from, std::int32_t count, std::byte* out) {
  const __m256 values = _mm256_maskload_ps(from, first_lanes(count));
  if (type == KvType::kF32) {
    _mm256_store_ps(reinterpret_cast<float*>(out), values);
  } else {
    _mm_store_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
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
    for (std::int32_t d = 0; d < kv.head_dim; d += 8) _mm256_storeu_ps(tile.acc[q] + d, _mm256_setzero_ps());
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
    const __m256 inverse = _mm256_set1_ps(1.0F / tile.total[q]);
    for (std::int32_t d = 0; d < kv.head_dim; d += 8) {
      const __m256 acc = _mm256_loadu_ps(tile.acc[q] + d);
      _mm256_maskstore_ps(out + d, first_lanes(kv.head_dim - d), _mm256_mul_ps(acc, inverse));
    }
  }
}

}  // namespace

void kv_store(const KvLayer& kv, std::int32_t block, std::int32_t slot, const float* keys, const float* values) noexcept {
  const std::int64_t element = kv.type == KvType::kF32 ? 4 : 2;
  const auto size = static_cast<std::size_t>(element);
  for (std::int32_t h = 0; h < kv.kv_heads; ++h, keys += kv.head_dim, values += kv.head_dim) {
    std::byte* head = kv.base + static_cast<std::size_t>(block) * kv.block_stride + static_cast<std::size_t>(h) * kv.head_stride;
    std::byte* value_row = head + kv.value_offset + slot * kv.head_dim * element;
    for (std::int32_t d = 0; d < kv.head_dim; d += 8) {
      const std::int32_t count = kv.head_dim - d < 8 ? kv.head_dim - d : 8;
      alignas(32) std::byte key[32];
      alignas(32) std::byte value[32];
      round_to(kv.type, keys + d, count, key);
      round_to(kv.type, values + d, count, value);
      __builtin_memcpy(value_row + d * element, value, static_cast<std::size_t>(count) * size);
      std::byte* key_slot = head + (std::int64_t{d} * kv.block_tokens + slot) * element;
      for (std::int32_t i = 0; i < count; ++i) __builtin_memcpy(key_slot + i * kv.block_tokens * element, key + i * element, size);
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

}  // namespace braid::kernels::avx2
