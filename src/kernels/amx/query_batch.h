// Queries that share a chunk's expanded keys and values, and what attention keeps for them in the caller's scratch.
#pragma once

#include "kernels/amx/expand_kv.h"

#include <type_traits>

namespace braid::kernels::amx {

constexpr int kBatchQueries = 256;
constexpr int kPairTiles = 2;  // tiles of queries that meet a tile of keys or values once it is loaded
constexpr int kBandQueries = kPairTiles * kTileRows;
constexpr std::int64_t kScoreStride = kChunkTokens + 16;                   // floats; rows of scores 1 KiB apart would share cache sets
constexpr std::int64_t kRowsAhead = 2;                                     // whose queries, and places of results, are fetched
constexpr std::int64_t kWeightTiles = kChunkTokens / (kTileRowBytes / 2);  // rows of bf16 weights

// Tops and totals of parts (kernel_table.h), those of neighbouring queries side by side.
struct Tops {
  alignas(64) float top[kBatchQueries];
  alignas(64) float total[kBatchQueries];
};

struct Batch {
  const AttentionArgs* args = nullptr;
  const KvLayer* kv = nullptr;
  std::int32_t head = 0;       // KV head
  std::int32_t group = 1;      // query heads that share it
  std::int64_t first_row = 0;  // queries are in the order row, head of the group
  std::int32_t first_head = 0;
  int count = 0;
  NextContext next;
  // In the caller's scratch:
  std::int16_t* row_of = nullptr;   // [kBatchQueries]: row of a query, from the batch's first
  std::int16_t* head_of = nullptr;  // [kBatchQueries]: its head of the group
  ChunkView* views = nullptr;       // [rows of the batch], of the chunk at hand
  std::byte* queries = nullptr;     // [tiles, key_steps, tile]
  Lines keys;
  Lines values;
  std::byte* weight_tiles = nullptr;  // [kPairTiles, kWeightTiles, tile]
  float* scores = nullptr;            // [kBandQueries, kScoreStride]
  float* parts = nullptr;             // [kBandQueries, part_floats], of the chunk at hand
  Tops* part_tops = nullptr;
  float* sums = nullptr;  // [kBatchQueries, part_floats], of the chunks so far
  Tops* sum_tops = nullptr;

  int rows() const { return row_of[count - 1] + 1; }
  std::int32_t position(int r) const { return args->rows[first_row + r].position; }
  const ChunkView& view(int q) const { return views[row_of[q]]; }
  std::int64_t part() const { return part_floats(kv->head_dim); }
  std::int64_t query_row(int q) const { return first_row + row_of[q]; }
  std::int64_t head_offset(int q) const { return std::int64_t{head * group + head_of[q]} * kv->head_dim; }
};

// Up to kBandQueries queries of a batch, and what they see together of the chunk at hand.
struct Band {
  int first;
  int count;
  avx512::VectorRange range;

  std::int32_t first_step() const { return range.first / 2; }
  std::int32_t last_step() const { return (range.last + 1) / 2; }
};

// Lays the arrays out from `base`, or only measures when it is null; returns what they take.
static inline std::size_t lay_out(Batch& batch, std::int32_t head_dim, std::byte* base) {
  std::size_t used = 0;
  const auto take = [&](auto*& array, std::int64_t bytes) {
    if (base != nullptr) array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(base + used);
    used += static_cast<std::size_t>((bytes + 63) / 64 * 64);
  };
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  take(batch.row_of, kBatchQueries * 2);
  take(batch.head_of, kBatchQueries * 2);
  take(batch.views, kBatchQueries * static_cast<std::int64_t>(sizeof(ChunkView)));
  take(batch.queries, kBatchQueries / kTileRows * key_steps(head_dim) * kTileBytes);
  take(batch.keys.scratch, avx512::kVectors * key_steps(head_dim) * kTileBytes);
  take(batch.values.scratch, avx512::kVectors * kValueLines * value_vectors(head_dim) * kTileRowBytes);
  take(batch.weight_tiles, kPairTiles * kWeightTiles * kTileBytes);
  take(batch.scores, kBandQueries * kScoreStride * kFloat);
  take(batch.parts, kBandQueries * part_floats(head_dim) * kFloat);
  take(batch.part_tops, static_cast<std::int64_t>(sizeof(Tops)));
  take(batch.sums, kBatchQueries * part_floats(head_dim) * kFloat);
  take(batch.sum_tops, static_cast<std::int64_t>(sizeof(Tops)));
  return used;
}

// Queries, scaled and rounded, and their rows and heads. Dimensions that are not there are zeros; what is left of the last tile of queries
// is never looked at.
static inline void load_queries(const Batch& batch) {
  const std::int32_t head_dim = batch.kv->head_dim;
  std::int16_t row = 0;
  auto head = static_cast<std::int16_t>(batch.first_head);
  for (int q = 0; q < batch.count; ++q) {
    batch.row_of[q] = row;
    batch.head_of[q] = head;
    if (++head == batch.group) {
      head = 0;
      ++row;
    }
    std::byte* tile_row = batch.queries + q / kTileRows * key_steps(head_dim) * kTileBytes + q % kTileRows * kTileRowBytes;
    const float* query = batch.args->queries + batch.query_row(q) * batch.args->query_stride + batch.head_offset(q);
    for (std::int32_t d = 0; d < key_steps(head_dim) * kKeyDims; d += 16) {
      const __mmask16 mask = avx512::first_lanes(head_dim - d);
      __builtin_prefetch(query + d + kRowsAhead * batch.args->query_stride);  // another core has computed them
      const __m512 values = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, query + (mask != 0 ? d : 0)), _mm512_set1_ps(batch.args->scale));
      std::byte* to = tile_row + d / kKeyDims * kTileBytes + d % kKeyDims * 2;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(round_to_bf16(values, values)));
    }
  }
}

}  // namespace braid::kernels::amx
