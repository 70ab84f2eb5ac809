// Where keys and values of a chunk lie as bf16 tiles. A line of a tile holds, for 16 columns, two consecutive elements of the inner
// dimension side by side: two dimensions of 16 keys, or two positions of 16 dimensions of the values. Pools of bf16 hold such lines
// (kernels/kv_order.h) and are multiplied where they are; of other pools, and where a tile would reach beyond what is there, lines are
// made in scratch (expand_kv.h).
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/attention_part.h"
#include "kernels/kv_order.h"

namespace braid::kernels::amx {

constexpr std::int32_t kKeyDims = 32;         // of one tile product
constexpr std::int32_t kValuePositions = 16;  // of one tile product
constexpr std::int64_t kValueLines = kValuePositions / 2;
constexpr std::int32_t kAhead = 64;  // positions

static inline std::int64_t key_steps(std::int32_t head_dim) { return (head_dim + kKeyDims - 1) / kKeyDims; }
static inline std::int64_t value_vectors(std::int32_t head_dim) { return (head_dim + 15) / 16; }

// Tiles of the two products, besides sums in 0 to 3. One product of weights and values is half as deep as one of queries and keys, because
// a block may have 16 positions only.
struct ScoreTiles {
  static constexpr int kX = 4;
  static constexpr int kW = 5;
};
struct ValueTiles {
  static constexpr int kX = 6;
  static constexpr int kW = 7;
};

// For `height` queries.
static inline TileConfig attention_config(std::int64_t height) {
  TileConfig config = tile_config(height);
  config.rows[ScoreTiles::kW] = kTileRows;
  config.rows[ValueTiles::kX] = static_cast<std::uint8_t>(height);
  config.row_bytes[ValueTiles::kX] = kValuePositions * 2;
  config.rows[ValueTiles::kW] = kValueLines;
  return config;
}

// Lines of the 16 positions of each vector of a chunk, one every `stride` bytes. Keys: a line for two dimensions. Values: one for two
// positions, 64 bytes for each 16 dimensions of it.
struct Lines {
  std::byte* scratch = nullptr;
  const std::byte* at[avx512::kVectors];
  const std::byte* ahead[avx512::kVectors];  // in place: what to fetch while these are multiplied
  std::int64_t stride;
};

// What is read: one KV head of a sequence, positions [begin, end) of the chunk but for [gap_begin, gap_end), which lie between sinks and
// windows: their blocks may hold anything, states of recurrent layers included.
struct ChunkSource {
  const KvLayer& kv;
  const std::int32_t* blocks;
  std::int32_t head;
  std::int32_t chunk;
  std::int32_t begin;
  std::int32_t end;
  std::int32_t gap_begin;
  std::int32_t gap_end;
  std::int32_t last;  // the batch's last position
  NextContext next;

  const std::byte* at(std::int32_t position) const { return kv_bytes(kv, blocks, head, position); }
  std::int32_t slot(std::int32_t position) const { return position & (kv.block_tokens - 1); }
  std::int32_t first_vector() const { return (begin - chunk) / 16; }
  std::int32_t last_vector() const { return (end - chunk + 15) / 16; }
  bool all_seen(std::int32_t from, std::int32_t to) const {
    return begin <= from && to <= end && (gap_end <= gap_begin || to <= gap_begin || gap_end <= from);
  }
};

// The head's bytes in the block that lies kAhead positions farther, or, beyond the last block, in one of the next context's: in both at the
// same slot, since blocks divide kAhead.
static inline const std::byte* ahead_of(const ChunkSource& source, std::int32_t position) {
  const NextContext& next = source.next;
  const std::int32_t there = position + kAhead;
  if (there <= source.last) return source.at(there);
  const std::int32_t beyond = there - (source.last | (source.kv.block_tokens - 1)) - 1;  // a power of two
  if (next.blocks == nullptr || beyond < 0 || next.begin + beyond > next.last) return source.at(position);
  return kv_bytes(source.kv, next.blocks, next.head, next.begin + beyond);
}

static inline void fetch(const std::byte* from) { _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1); }

// Whether blocks of the pool are whole tiles.
static inline bool holds_tiles(const KvLayer& kv) {
  return kv.type == KvType::kBF16 && kv.block_tokens >= 16 && kv.head_dim % kKeyDims == 0;
}

}  // namespace braid::kernels::amx
