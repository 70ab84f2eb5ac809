// Which positions of a chunk of the context a row sees, where they lie, and sizes that the tiers share. Internal linkage, because wide
// tiers include it.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/numerics.h"

#include <cstddef>
#include <cstdint>

namespace braid::kernels {

// Floats of one part, see kPartHeader.
static inline std::int64_t part_floats(std::int32_t head_dim) { return kPartHeader + (std::int64_t{head_dim} + 15) / 16 * 16; }

static inline std::int32_t kv_groups(std::int32_t head_dim) { return (head_dim + kKvGroup - 1) / kKvGroup; }

// kInt8: bytes from the scales of a head's keys to those of its values in a block.
static inline std::int64_t value_scale_step(const KvLayer& kv) {
  return kv.latent ? 0 : std::int64_t{kv_groups(kv.head_dim)} * kv.block_tokens * 2;
}

// A KV head's bytes in the block of a position. A block that no query sees may be absent; another one then stands for it, and nothing
// read from it is used.
static inline const std::byte* kv_bytes(const KvLayer& kv, const std::int32_t* blocks, std::int32_t head, std::int32_t position) {
  const std::int32_t block = blocks[position >> __builtin_ctz(static_cast<unsigned>(kv.block_tokens))];  // a power of two
  return kv.base + static_cast<std::size_t>(block < 0 ? 0 : block) * kv.block_stride + static_cast<std::size_t>(head) * kv.head_stride;
}

// Of the chunk that begins at position `chunk`: [chunk, sink_end), then [begin, end). Either may be empty.
struct ChunkView {
  std::int32_t sink_end;
  std::int32_t begin;
  std::int32_t end;
};

static inline ChunkView view_of_chunk(const AttentionArgs& args, std::int32_t position, std::int32_t chunk) {
  std::int32_t end = position + 1 < chunk + kChunkTokens ? position + 1 : chunk + kChunkTokens;
  if (end < chunk) end = chunk;
  if (args.window <= 0) return {chunk, chunk, end};
  std::int32_t sink_end = args.sink < end ? args.sink : end;
  if (sink_end < chunk) sink_end = chunk;
  std::int32_t begin = position + 1 - args.window;
  if (begin < sink_end) begin = sink_end;
  if (begin >= end) return {sink_end, sink_end, sink_end};
  return {sink_end, begin, end};
}

static inline bool sees(const ChunkView& view, std::int32_t chunk) { return view.sink_end > chunk || view.begin < view.end; }

static inline bool sees_all(const ChunkView& view, std::int32_t chunk) {
  return view.begin == view.sink_end && view.end == chunk + kChunkTokens;
}

// The chunk after `chunk` of which a row at `position` may see something; chunks begin at multiples of kChunkTokens.
static inline std::int32_t next_chunk(const AttentionArgs& args, std::int32_t position, std::int32_t chunk) {
  chunk += kChunkTokens;
  if (args.window <= 0 || chunk < args.sink) return chunk;
  const std::int32_t window_chunk = (position + 1 - args.window) / kChunkTokens * kChunkTokens;
  return window_chunk > chunk ? window_chunk : chunk;
}

static inline std::int32_t first_chunk(const AttentionArgs& args, std::int32_t position) {
  return next_chunk(args, position, -kChunkTokens);
}

// What is read when a context has been, to be fetched meanwhile: of one KV head, positions [begin, last].
struct NextContext {
  const std::int32_t* blocks = nullptr;  // nothing to fetch
  std::int32_t head = 0;
  std::int32_t begin = 0;  // a chunk's first
  std::int32_t last = 0;
};

// After the rows up to `end` of one sequence: the next row's, or, after the last one, the next head's of the first row.
static inline NextContext next_context(const AttentionArgs& args, std::int32_t head, std::int64_t end, std::int64_t row_begin,
                                       std::int64_t row_end) {
  const bool other_head = end == row_end;
  if (other_head && ++head == args.kv->kv_heads) return {};
  const AttentionRow& row = args.rows[other_head ? row_begin : end];
  return {row.blocks, head, first_chunk(args, row.position), row.position};
}

}  // namespace braid::kernels
