// Attention as scalar/attention.cpp defines it, for up to kQueryTile query vectors in one pass over keys and values: the heads that
// share a KV head, and the next rows of the same sequence. A vector is 16 positions for scores (keys are stored transposed) and 16
// dimensions for the weighted values, so neither needs a sum across lanes. Limit: the multiply-add; 73% of its peak measured on Zen
// 4 at 4,096 positions (perf/README.md). A block-wise layout defeats the hardware's prefetch, so what comes next is fetched by hand.
#include <kernels/avx512/attention_part.h>
#include <kernels/avx512/kv_load.h>
#include <kernels/avx512/tier.h>

namespace braid::kernels::avx512 {
namespace {

std::int64_t padded(std::int32_t head_dim) { return (head_dim + 15) / 16 * 16; }

// The keys of 16 positions for one dimension lie together, or, in blocks of 8, in two places.
struct KeyVector {
  const std::byte* low;
  const std::byte* high;
};

// What the queries of a tile share.
struct Tile {
  const AttentionArgs* args = nullptr;
  const KvLayer* kv = nullptr;
  const std::int32_t* blocks = nullptr;
  std::int32_t head = 0;  // KV head
  int count = 0;
  std::int32_t position[kQueryTile] = {};  // never decreasing
  float* sum[kQueryTile] = {};             // the chunks so far, as a part
  float* spare[kQueryTile] = {};           // [part_floats], for chunks after a query's first
  float* queries = nullptr;                // [head_dim, kQueryTile], scaled
  float* weights = nullptr;                // [kQueryTile, kChunkTokens]
  float* scaled = nullptr;                 // [kQueryTile, kChunkTokens], weights times value scales
  float* key_scales = nullptr;             // [groups, kChunkTokens]
  float* value_scales = nullptr;           // [groups, kChunkTokens]
  // Of the chunk at hand:
  std::int32_t chunk = 0;
  ChunkView view[kQueryTile] = {};
  float* part[kQueryTile] = {};            // where its part goes
  KeyVector keys[kVectors] = {};
};

const std::byte* head_bytes(const Tile& tile, std::int32_t position) { return kv_bytes(*tile.kv, tile.blocks, tile.head, position); }

// Keys to fetch while those of `position` are worked on: one chunk on, in the same sequence.
const std::byte* next_chunk_keys(const Tile& tile, std::int32_t position) {
  const std::int32_t next = position + kChunkTokens;
  return head_bytes(tile, next <= tile.position[tile.count - 1] ? next : position);
}

// Scores of queries [q, q + kQueries) with the positions of kKeys vectors, over dimensions [begin, end): a group of kInt8, else all.
template <KvType kType, bool kHalves, int kQueries, int kKeys>
void score(const Tile& tile, int q, std::int32_t vector, std::int32_t begin, std::int32_t end) {
  const std::int64_t step = tile.kv->block_tokens * kKvBytes<kType>;
  KeyVector at[kKeys];
#pragma GCC unroll 8
  for (int v = 0; v < kKeys; ++v) at[v] = tile.keys[vector + v];
  const float* query = tile.queries + q;
  __m512 sum[kQueries][kKeys];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  const std::int64_t values = static_cast<std::int64_t>(tile.kv->value_offset);
  for (std::int32_t d = begin; d < end; ++d) {
    // The block's values come next, and lie just as far in.
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) _mm_prefetch(reinterpret_cast<const char*>(at[v].low + values + d * step), _MM_HINT_T1);
    __m512 key[kKeys];
#pragma GCC unroll 8
    for (int v = 0; v < kKeys; ++v) {
      if constexpr (kHalves) {
        key[v] = load_kv<kType>(at[v].low + d * step, at[v].high + d * step);
      } else {
        key[v] = load_kv<kType>(at[v].low + d * step);
      }
    }
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

// Adds weight * value of positions [begin, end) to kDims vectors of the parts from dimension d on; `weights` are of the tile's form.
template <KvType kType, int kQueries, int kDims>
void add_values(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d) {
  const KvLayer& kv = *tile.kv;
  const std::int64_t step = kv.head_dim * kKvBytes<kType>;
  __mmask16 mask[kDims];
#pragma GCC unroll 8
  for (int v = 0; v < kDims; ++v) mask[v] = first_lanes(kv.head_dim - d - v * 16);
  weights += q * kChunkTokens - tile.chunk;
  __m512 acc[kQueries][kDims];
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kDims; ++v) acc[i][v] = _mm512_loadu_ps(tile.part[q + i] + kPartHeader + d + v * 16);
  }
  for (std::int32_t t = begin; t < end;) {
    const std::int32_t slot = t % kv.block_tokens;
    const std::int32_t block_end = t - slot + kv.block_tokens < end ? t - slot + kv.block_tokens : end;
    const std::byte* value = head_bytes(tile, t) + kv.value_offset + slot * step + d * kKvBytes<kType>;
    const std::byte* ahead = next_chunk_keys(tile, t) + slot * step + d * kKvBytes<kType>;
    for (; t < block_end; ++t, value += step, ahead += step) {
      _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      __m512 values[kDims];
#pragma GCC unroll 8
      for (int v = 0; v < kDims; ++v) values[v] = load_kv<kType>(mask[v], value + v * 16 * kKvBytes<kType>);
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
    for (int v = 0; v < kDims; ++v) _mm512_storeu_ps(tile.part[q + i] + kPartHeader + d + v * 16, acc[i][v]);
  }
}

// A range of positions for each query of a group, and of dimensions.
template <int kQueries>
struct Ranges {
  std::int32_t begin[kQueries];
  std::int32_t end[kQueries];
};

template <KvType kType, int kQueries>
void add_dims(const Tile& tile, int q, const float* weights, std::int32_t begin, std::int32_t end, std::int32_t d, std::int32_t d_end) {
  constexpr int kDims = kQueries == 8 ? 2 : 4;
  if (begin >= end) return;
  for (; d_end - d > (kDims - 1) * 16; d += kDims * 16) add_values<kType, kQueries, kDims>(tile, q, weights, begin, end, d);
  for (; d < d_end; d += 16) add_values<kType, kQueries, 1>(tile, q, weights, begin, end, d);
}

// What all queries see goes together. No query may meet a value that it does not see, not even with weight zero.
template <KvType kType, int kQueries>
void add_ranges(const Tile& tile, int q, const float* weights, const Ranges<kQueries>& ranges, std::int32_t d, std::int32_t d_end) {
  std::int32_t begin = ranges.begin[0];
  std::int32_t end = ranges.end[0];
  for (int i = 1; i < kQueries; ++i) {
    begin = ranges.begin[i] > begin ? ranges.begin[i] : begin;
    end = ranges.end[i] < end ? ranges.end[i] : end;
  }
  if (begin >= end) begin = end = tile.chunk + kChunkTokens;  // nothing together: each query's range lies before
  for (int i = 0; i < kQueries; ++i)
    add_dims<kType, 1>(tile, q + i, weights, ranges.begin[i], ranges.end[i] < begin ? ranges.end[i] : begin, d, d_end);
  add_dims<kType, kQueries>(tile, q, weights, begin, end, d, d_end);
  for (int i = 0; i < kQueries; ++i) add_dims<kType, 1>(tile, q + i, weights, end, ranges.end[i], d, d_end);
}

// The parts of queries [q, q + kQueries) of the chunk at hand.
template <KvType kType, bool kHalves, int kQueries>
void compute_parts(Tile& tile, int q) {
  constexpr int kKeys = kQueries == 8 ? 2 : 4;
  const std::int32_t head_dim = tile.kv->head_dim;
  const std::int32_t group = kType == KvType::kInt8 ? kKvGroup : head_dim;
  Ranges<kQueries> sinks, window;
  std::int32_t begin = tile.chunk + kChunkTokens;
  std::int32_t end = tile.chunk;
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
    const ChunkView& view = tile.view[q + i];
    sinks.begin[i] = tile.chunk;
    sinks.end[i] = view.sink_end;
    window.begin[i] = view.begin;
    window.end[i] = view.end;
    const std::int32_t seen_begin = view.sink_end > tile.chunk ? tile.chunk : view.begin;
    const std::int32_t seen_end = view.begin < view.end ? view.end : view.sink_end;
    begin = seen_begin < begin ? seen_begin : begin;
    end = seen_end > end ? seen_end : end;
  }
  const std::int32_t first = (begin - tile.chunk) / 16;
  const std::int32_t last = (end - tile.chunk + 15) / 16;
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    std::int32_t vector = first;
    for (; vector + kKeys <= last; vector += kKeys) score<kType, kHalves, kQueries, kKeys>(tile, q, vector, d, d_end);
    for (; vector < last; ++vector) score<kType, kHalves, kQueries, 1>(tile, q, vector, d, d_end);
  }
  for (int i = 0; i < kQueries; ++i) {
    soften(tile.view[q + i], tile.chunk, tile.args->score_cap, tile.weights + (q + i) * kChunkTokens, tile.part[q + i]);
    for (std::int32_t d = 0; d < head_dim; d += 16) _mm512_storeu_ps(tile.part[q + i] + kPartHeader + d, _mm512_setzero_ps());
  }
  for (std::int32_t d = 0; d < head_dim; d += group) {
    const std::int32_t d_end = head_dim - d < group ? head_dim : d + group;
    const float* weights = tile.weights;
    if constexpr (kType == KvType::kInt8) {
      weights = tile.scaled;
      for (std::int32_t v = first; v < last; ++v) {
        const __m512 scale = _mm512_loadu_ps(tile.value_scales + d / kKvGroup * kChunkTokens + v * 16);
        for (int i = 0; i < kQueries; ++i) {
          const std::int64_t at = (q + i) * kChunkTokens + v * 16;
          _mm512_storeu_ps(tile.scaled + at, _mm512_mul_ps(_mm512_loadu_ps(tile.weights + at), scale));
        }
      }
    }
    add_ranges<kType, kQueries>(tile, q, weights, sinks, d, d_end);
    add_ranges<kType, kQueries>(tile, q, weights, window, d, d_end);
  }
}

// The parts of queries [first, last), as many at a time as fit.
template <KvType kType, bool kHalves>
void compute_all(Tile& tile, int first, int last) {
  const std::int32_t end = tile.position[last - 1] + 1;
  const std::int64_t bytes = kKvBytes<kType>;
  for (std::int32_t v = 0; v < kVectors && tile.chunk + v * 16 < end; ++v) {
    const std::int32_t position = tile.chunk + v * 16;
    tile.keys[v].low = head_bytes(tile, position) + position % tile.kv->block_tokens * bytes;
    // Past the sequence there may be no block; those lanes are not used.
    tile.keys[v].high = kHalves && position + 8 < end ? head_bytes(tile, position + 8) : tile.keys[v].low;
  }
  if constexpr (kType == KvType::kInt8)
    load_scales(*tile.kv, tile.blocks, tile.head, tile.chunk, end, tile.key_scales, tile.value_scales);
  for (int q = first; q < last;) {
    const int left = last - q;
    if (left >= 8) {
      compute_parts<kType, kHalves, 8>(tile, q);
      q += 8;
    } else if (left >= 4) {
      compute_parts<kType, kHalves, 4>(tile, q);
      q += 4;
    } else if (left >= 2) {
      compute_parts<kType, kHalves, 2>(tile, q);
      q += 2;
    } else {
      compute_parts<kType, kHalves, 1>(tile, q);
      q += 1;
    }
  }
}

template <KvType kType>
void compute_typed(Tile& tile, int first, int last) {
  tile.kv->block_tokens < 16 ? compute_all<kType, true>(tile, first, last) : compute_all<kType, false>(tile, first, last);
}

void compute_chunk(Tile& tile, int first, int last) {
  switch (tile.kv->type) {
    case KvType::kF32:
      return compute_typed<KvType::kF32>(tile, first, last);
    case KvType::kF16:
      return compute_typed<KvType::kF16>(tile, first, last);
    case KvType::kBF16:
      return compute_typed<KvType::kBF16>(tile, first, last);
    case KvType::kInt8:
      return compute_typed<KvType::kInt8>(tile, first, last);
  }
}

void attend(Tile& tile) {
  const AttentionArgs& args = *tile.args;
  const std::int32_t last_position = tile.position[tile.count - 1];
  bool begun[kQueryTile] = {};
  for (tile.chunk = first_chunk(args, tile.position[0]); tile.chunk <= last_position;
       tile.chunk = next_chunk(args, tile.position[0], tile.chunk)) {
    for (int q = 0; q < tile.count; ++q) tile.view[q] = view_of_chunk(args, tile.position[q], tile.chunk);
    int first = 0;
    int last = tile.count;
    while (first < last && !sees(tile.view[first], tile.chunk)) ++first;
    while (first < last && !sees(tile.view[last - 1], tile.chunk)) --last;
    if (first == last) continue;
    for (int q = first; q < last; ++q) tile.part[q] = begun[q] ? tile.spare[q] : tile.sum[q];
    compute_chunk(tile, first, last);
    for (int q = first; q < last; ++q) {
      if (begun[q]) join(tile.part[q], tile.kv->head_dim, tile.sum[q]);
      begun[q] = true;
    }
  }
}

// The tile's arrays in the caller's scratch.
Tile make_tile(const AttentionArgs& args) {
  Tile tile;
  tile.args = &args;
  tile.kv = args.kv;
  const std::int64_t part = part_floats(args.kv->head_dim);
  tile.weights = reinterpret_cast<float*>(args.scratch);
  tile.scaled = tile.weights + kQueryTile * kChunkTokens;
  tile.key_scales = tile.scaled + kQueryTile * kChunkTokens;
  tile.value_scales = tile.key_scales + kv_groups(args.kv->head_dim) * kChunkTokens;
  tile.queries = tile.value_scales + kv_groups(args.kv->head_dim) * kChunkTokens;
  float* parts = tile.queries + kQueryTile * padded(args.kv->head_dim);
  for (int q = 0; q < kQueryTile; ++q) {
    tile.sum[q] = parts + q * part;
    tile.spare[q] = parts + (kQueryTile + q) * part;
  }
  return tile;
}

// Loads queries [first, first + tile.count) of the rows from `row` on, in the order row, head of the KV head's group.
void load_queries(const AttentionArgs& args, std::int64_t row, std::int64_t first, Tile& tile) {
  const KvLayer& kv = *args.kv;
  const std::int32_t group = args.heads / kv.kv_heads;
  tile.blocks = args.rows[row].blocks;
  for (int q = 0; q < tile.count; ++q) {
    const std::int64_t r = row + (first + q) / group;
    const float* query = args.queries + r * args.query_stride + (tile.head * group + (first + q) % group) * kv.head_dim;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) tile.queries[d * kQueryTile + q] = query[d] * args.scale;
    tile.position[q] = args.rows[r].position;
  }
}

}  // namespace

std::size_t attention_scratch_bytes(std::int32_t /*heads*/, std::int32_t head_dim) noexcept {
  return static_cast<std::size_t>(kQueryTile * (2 * kChunkTokens + padded(head_dim) + 2 * part_floats(head_dim)) +
                                  2 * kv_groups(head_dim) * kChunkTokens) * sizeof(float);
}

void attention(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
               std::int32_t kv_head_end) noexcept {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  Tile tile = make_tile(args);
  for (tile.head = kv_head_begin; tile.head < kv_head_end; ++tile.head) {
    for (std::int64_t row = row_begin; row < row_end;) {
      std::int64_t end = row + 1;  // rows of one sequence
      while (end < row_end && args.rows[end].blocks == args.rows[row].blocks) ++end;
      const std::int64_t queries = (end - row) * group;
      for (std::int64_t first = 0; first < queries; first += kQueryTile) {
        tile.count = static_cast<int>(queries - first < kQueryTile ? queries - first : kQueryTile);
        load_queries(args, row, first, tile);
        attend(tile);
        for (int q = 0; q < tile.count; ++q)
          finish(tile.sum[q], head_dim,
                 args.out + (row + (first + q) / group) * args.out_stride + (tile.head * group + (first + q) % group) * head_dim);
      }
      row = end;
    }
  }
}

void attention_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) noexcept {
  const std::int32_t group = args.heads / args.kv->kv_heads;
  Tile tile = make_tile(args);
  tile.head = kv_head;
  tile.chunk = chunk;
  for (std::int32_t first = 0; first < group; first += kQueryTile) {
    tile.count = group - first < kQueryTile ? group - first : kQueryTile;
    load_queries(args, row, first, tile);
    for (int q = 0; q < tile.count; ++q) {
      tile.view[q] = view_of_chunk(args, tile.position[q], chunk);
      tile.part[q] = parts + (first + q) * part_floats(args.kv->head_dim);
    }
    compute_chunk(tile, 0, tile.count);
  }
}

void attention_join(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                    std::int64_t stride) noexcept {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  auto* sum = reinterpret_cast<float*>(args.scratch);
  for (std::int32_t i = 0; i < group; ++i, parts += part_floats(head_dim)) {
    __builtin_memcpy(sum, parts, static_cast<std::size_t>(part_floats(head_dim)) * sizeof(float));
    for (std::int64_t p = 1; p < count; ++p) join(parts + p * stride, head_dim, sum);
    finish(sum, head_dim, args.out + row * args.out_stride + (kv_head * group + i) * head_dim);
  }
}

}  // namespace braid::kernels::avx512
