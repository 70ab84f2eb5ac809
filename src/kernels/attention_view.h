// Which positions of a chunk of the context a row sees, and sizes that the tiers share. Internal linkage, because wide tiers include
// it.
#pragma once

#include <kernels/kernel_table.h>
#include <kernels/numerics.h>

#include <cstdint>

namespace braid::kernels {

// Floats of one part, see kPartHeader.
static inline std::int64_t part_floats(std::int32_t head_dim) { return kPartHeader + (std::int64_t{head_dim} + 15) / 16 * 16; }

static inline std::int32_t kv_groups(std::int32_t head_dim) { return (head_dim + kKvGroup - 1) / kKvGroup; }

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

}  // namespace braid::kernels
