// The order in which the vector tiers go through rows, queries and chunks: up to kQueryTile query vectors share one pass over keys
// and values, the heads that share a KV head and the next rows of the same sequence. A tier brings what touches vectors, as Steps:
//   using Tile = QueryTile<...>
//   compute(tile, first, last)     the parts of queries [first, last) of the chunk at hand
//   join(part, head_dim, sum)      adds a part to the sum
//   finish(sum, head_dim, out)     turns the sum into the answer
// Internal linkage, because wide tiers include it.
#pragma once

#include "kernels/attention_view.h"

namespace braid::kernels {

static inline std::int64_t padded_dims(std::int32_t head_dim) { return (head_dim + 15) / 16 * 16; }

// What the queries of a tile share. A Key is where the keys of a vector of positions lie.
template <class Key, int kVectors>
struct QueryTile {
  const AttentionArgs* args = nullptr;
  const KvLayer* kv = nullptr;
  const std::int32_t* blocks = nullptr;
  std::int32_t head = 0;  // KV head
  NextContext next;
  int count = 0;
  std::int32_t position[kQueryTile] = {};  // never decreasing
  float slope[kQueryTile] = {};            // of AttentionArgs::slopes
  float* sum[kQueryTile] = {};             // the chunks so far, as a part
  float* spare[kQueryTile] = {};           // [part_floats], for chunks after a query's first
  float* queries = nullptr;                // [head_dim, kQueryTile], scaled
  float* weights = nullptr;                // [kQueryTile, kChunkTokens]
  float* scaled = nullptr;                 // [kQueryTile, kChunkTokens], weights times value scales
  float* key_scales = nullptr;             // [groups, kChunkTokens]
  float* value_scales = nullptr;           // [groups, kChunkTokens]
  float* unpacked = nullptr;               // of a latent pool: keys of kUnpackedTokens positions, [vectors, padded_dims, a vector]
  // Of the chunk at hand:
  std::int32_t chunk = 0;
  ChunkView view[kQueryTile] = {};
  float* part[kQueryTile] = {};  // where its part goes
  Key keys[kVectors] = {};
};

template <class Tile>
static inline const std::byte* head_bytes(const Tile& tile, std::int32_t position) {
  return kv_bytes(*tile.kv, tile.blocks, tile.head, position);
}

// Keys to fetch while values of `position` are added: one chunk on, or, in the last one, the next context's. A context that begins is
// read at once, and what nobody fetched for it comes from memory one line after another.
template <class Tile>
static inline const std::byte* keys_ahead(const Tile& tile, std::int32_t position) {
  const std::int32_t there = position + kChunkTokens;
  if (there <= tile.position[tile.count - 1]) return head_bytes(tile, there);
  const std::int32_t in_next = tile.next.begin + position % kChunkTokens;
  if (tile.next.blocks == nullptr || in_next > tile.next.last) return head_bytes(tile, position);
  return kv_bytes(*tile.kv, tile.next.blocks, tile.next.head, in_next);
}

// A latent pool has keys in the order of values, so for so many positions at a time they are made floats in the order of keys.
static constexpr std::int32_t kUnpackedTokens = 64;

// How the keys of a vector of positions lie: together, in two blocks of 8, or as floats in the tile's scratch.
enum class KeyForm { kTogether, kHalves, kUnpacked };

// A range of positions for each query of a group, and of dimensions.
template <int kQueries>
struct Ranges {
  std::int32_t begin[kQueries];
  std::int32_t end[kQueries];
};

// What queries [q, q + kQueries) see of the chunk at hand.
template <int kQueries>
struct GroupView {
  Ranges<kQueries> sinks;
  Ranges<kQueries> window;
};

template <int kQueries, class Tile>
static inline GroupView<kQueries> view_of_group(const Tile& tile, int q) {
  GroupView<kQueries> group;
#pragma GCC unroll 8
  for (int i = 0; i < kQueries; ++i) {
    const ChunkView& view = tile.view[q + i];
    group.sinks.begin[i] = tile.chunk;
    group.sinks.end[i] = view.sink_end;
    group.window.begin[i] = view.begin;
    group.window.end[i] = view.end;
  }
  return group;
}

// The vectors [first, last) of the chunk at hand, of kWidth positions each, that hold what queries [q, q_end) see.
struct SeenVectors {
  std::int32_t first;
  std::int32_t last;
};

template <int kWidth, class Tile>
static inline SeenVectors seen_vectors(const Tile& tile, int q, int q_end) {
  std::int32_t first = tile.chunk + kChunkTokens;
  std::int32_t last = tile.chunk;
  for (; q < q_end; ++q) {
    const ChunkView& view = tile.view[q];
    const std::int32_t begin = view.sink_end > tile.chunk ? tile.chunk : view.begin;
    const std::int32_t end = view.begin < view.end ? view.end : view.sink_end;
    first = begin < first ? begin : first;
    last = end > last ? end : last;
  }
  return {(first - tile.chunk) / kWidth, (last - tile.chunk + kWidth - 1) / kWidth};
}

template <int kQueries>
struct Together {
  static constexpr int kCount = kQueries;
};

// What all queries see goes together: use(Together<n>, q, begin, end). No query may meet a value that it does not see, not even
// with weight zero.
template <int kQueries, class Use>
static inline void split_ranges(const Ranges<kQueries>& ranges, int q, std::int32_t chunk, const Use& use) {
  std::int32_t begin = ranges.begin[0];
  std::int32_t end = ranges.end[0];
  for (int i = 1; i < kQueries; ++i) {
    begin = ranges.begin[i] > begin ? ranges.begin[i] : begin;
    end = ranges.end[i] < end ? ranges.end[i] : end;
  }
  if (begin >= end) begin = end = chunk + kChunkTokens;  // nothing together: each query's range lies before
  for (int i = 0; i < kQueries; ++i) use(Together<1>{}, q + i, ranges.begin[i], ranges.end[i] < begin ? ranges.end[i] : begin);
  use(Together<kQueries>{}, q, begin, end);
  for (int i = 0; i < kQueries; ++i) use(Together<1>{}, q + i, end, ranges.end[i]);
}

// The first of kCounts, which fall to 1, that is not above `wanted`: use(Together<n>, q), and returns n.
template <int... kCounts, class Use>
static inline int use_most(int wanted, int q, const Use& use) {
  int taken = 0;
  static_cast<void>(((kCounts <= wanted && (use(Together<kCounts>{}, q), taken = kCounts, true)) || ...));
  return taken;
}

// Queries [first, last) in pieces as equal as can be, of kMost or one of kFewer.
template <int kMost, int... kFewer, class Use>
static inline void split_queries(int first, int last, const Use& use) {
  for (int q = first; q < last;) {
    const int left = last - q;
    const int pieces = (left + kMost - 1) / kMost;
    q += use_most<kMost, kFewer...>((left + pieces - 1) / pieces, q, use);
  }
}

// Calls `visitor`, whose template parameter is a KvType, with `type`.
template <class Visitor>
static inline void with_kv_type(KvType type, const Visitor& visitor) {
  switch (type) {
    case KvType::kF32:
      return visitor.template operator()<KvType::kF32>();
    case KvType::kF16:
      return visitor.template operator()<KvType::kF16>();
    case KvType::kBF16:
      return visitor.template operator()<KvType::kBF16>();
    case KvType::kInt8:
      return visitor.template operator()<KvType::kInt8>();
  }
}

template <class Steps>
static void attend_tile(typename Steps::Tile& tile) {
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
    Steps::compute(tile, first, last);
    for (int q = first; q < last; ++q) {
      if (begun[q]) Steps::join(tile.part[q], tile.kv->head_dim, tile.sum[q]);
      begun[q] = true;
    }
  }
}

// The tile's arrays in the caller's scratch.
template <class Tile>
static Tile make_tile(const AttentionArgs& args) {
  Tile tile;
  tile.args = &args;
  tile.kv = args.kv;
  const std::int64_t part = part_floats(args.kv->head_dim);
  tile.weights = reinterpret_cast<float*>(args.scratch);
  tile.scaled = tile.weights + kQueryTile * kChunkTokens;
  tile.key_scales = tile.scaled + kQueryTile * kChunkTokens;
  tile.value_scales = tile.key_scales + kv_groups(args.kv->head_dim) * kChunkTokens;
  tile.queries = tile.value_scales + kv_groups(args.kv->head_dim) * kChunkTokens;
  float* parts = tile.queries + kQueryTile * padded_dims(args.kv->head_dim);
  for (int q = 0; q < kQueryTile; ++q) {
    tile.sum[q] = parts + q * part;
    tile.spare[q] = parts + (kQueryTile + q) * part;
  }
  tile.unpacked = parts + 2 * kQueryTile * part;
  return tile;
}

// Loads queries [first, first + tile.count) of the rows from `row` on, in the order row, head of the KV head's group.
template <class Tile>
static void load_queries(const AttentionArgs& args, std::int64_t row, std::int64_t first, Tile& tile) {
  const KvLayer& kv = *args.kv;
  const std::int32_t group = args.heads / kv.kv_heads;
  tile.blocks = args.rows[row].blocks;
  for (int q = 0; q < tile.count; ++q) {
    const std::int64_t r = row + (first + q) / group;
    const std::int64_t head = tile.head * group + (first + q) % group;
    const float* query = args.queries + r * args.query_stride + head * kv.head_dim;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) tile.queries[d * kQueryTile + q] = query[d] * args.scale;
    tile.position[q] = args.rows[r].position;
    if (args.slopes != nullptr) tile.slope[q] = args.slopes[head];
  }
}

static inline std::size_t tile_scratch_bytes(std::int32_t head_dim, bool latent) {
  return static_cast<std::size_t>(kQueryTile * (2 * kChunkTokens + padded_dims(head_dim) + 2 * part_floats(head_dim)) +
                                  2 * kv_groups(head_dim) * kChunkTokens + (latent ? kUnpackedTokens * padded_dims(head_dim) : 0)) *
         sizeof(float);
}

template <class Steps>
static void attend_rows(const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t kv_head_begin,
                        std::int32_t kv_head_end) {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  auto tile = make_tile<typename Steps::Tile>(args);
  for (tile.head = kv_head_begin; tile.head < kv_head_end; ++tile.head) {
    for (std::int64_t row = row_begin; row < row_end;) {
      std::int64_t end = row + 1;  // rows of one sequence
      while (end < row_end && args.rows[end].blocks == args.rows[row].blocks) ++end;
      const std::int64_t queries = (end - row) * group;
      tile.next = next_context(args, tile.head, end, row_begin, row_end);
      for (std::int64_t first = 0; first < queries; first += kQueryTile) {
        tile.count = static_cast<int>(queries - first < kQueryTile ? queries - first : kQueryTile);
        load_queries(args, row, first, tile);
        attend_tile<Steps>(tile);
        for (int q = 0; q < tile.count; ++q) {
          const std::int64_t head = tile.head * group + (first + q) % group;
          if (args.sinks != nullptr) Steps::join_sink(args.sinks[head], head_dim, tile.sum[q]);
          Steps::finish(tile.sum[q], head_dim, args.out + (row + (first + q) / group) * args.out_stride + head * head_dim);
        }
      }
      row = end;
    }
  }
}

template <class Steps>
static void attend_part(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) {
  const std::int32_t group = args.heads / args.kv->kv_heads;
  auto tile = make_tile<typename Steps::Tile>(args);
  tile.head = kv_head;
  tile.chunk = chunk;
  for (std::int32_t first = 0; first < group; first += kQueryTile) {
    tile.count = group - first < kQueryTile ? group - first : kQueryTile;
    load_queries(args, row, first, tile);
    for (int q = 0; q < tile.count; ++q) {
      tile.view[q] = view_of_chunk(args, tile.position[q], chunk);
      tile.part[q] = parts + (first + q) * part_floats(args.kv->head_dim);
    }
    Steps::compute(tile, 0, tile.count);
  }
}

template <class Steps>
static void join_parts(const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, const float* parts, std::int64_t count,
                       std::int64_t stride) {
  const std::int32_t head_dim = args.kv->head_dim;
  const std::int32_t group = args.heads / args.kv->kv_heads;
  auto* sum = reinterpret_cast<float*>(args.scratch);
  for (std::int32_t i = 0; i < group; ++i, parts += part_floats(head_dim)) {
    __builtin_memcpy(sum, parts, static_cast<std::size_t>(part_floats(head_dim)) * sizeof(float));
    for (std::int64_t p = 1; p < count; ++p) Steps::join(parts + p * stride, head_dim, sum);
    if (args.sinks != nullptr) Steps::join_sink(args.sinks[kv_head * group + i], head_dim, sum);
    Steps::finish(sum, head_dim, args.out + row * args.out_stride + (kv_head * group + i) * head_dim);
  }
}

}  // namespace braid::kernels
