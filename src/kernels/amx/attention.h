// Attention by bf16 tiles, for any implementation of the tile instructions. The chunks, views, softmax and joining are those of
// scalar/attention.cpp; queries, keys, weights and values are rounded to bf16 (int8 codes are exact), and sums stay floats. Up to
// kBatchQueries queries (the heads that share a KV head, and the next rows of the same sequence) share a chunk's expanded keys and values,
// 16 of them a tile. A query's result does not depend on the others: a tile's rows are independent, and a position that a query does not
// see meets it with a weight of zero. One row goes through the same products as many.
//
// Limit: of one tile of queries and one chunk of head size 64, the 64 tile products take 1,024 cycles; the softmax of its 4,096 scores
// takes about three times that.
#pragma once

#include <kernels/amx/expand_kv.h>

#include <type_traits>

namespace braid::kernels::amx {

constexpr int kBatchQueries = 64;
constexpr int kQueryTiles = kBatchQueries / kTileRows;
constexpr std::int64_t kWeightBytes = kChunkTokens / kKeySteps * kTileBytes;

struct Batch {
  const AttentionArgs* args = nullptr;
  const KvLayer* kv = nullptr;
  std::int32_t head = 0;       // KV head
  std::int64_t row = 0;        // first row of the run
  std::int64_t first = 0;      // query of the run: row, then head of the group
  int count = 0;
  ChunkView view[kBatchQueries] = {};  // of the chunk at hand
  // In the caller's scratch:
  std::byte* queries = nullptr;        // [kQueryTiles, key_steps, tile]
  std::byte* keys = nullptr;           // [key_steps, vectors, tile]
  std::byte* values = nullptr;         // [steps of positions, value_vectors, tile]
  std::byte* weight_tiles = nullptr;   // [steps of positions, tile]
  float* key_scales = nullptr;         // [groups, kChunkTokens]
  float* value_scales = nullptr;       // [groups, kChunkTokens]
  float* weights = nullptr;            // [16, kChunkTokens]
  float* group_scores = nullptr;       // [16, kChunkTokens]
  float* parts = nullptr;              // [16, part_floats]
  float* sums = nullptr;               // [kBatchQueries, part_floats]

  std::int32_t group() const { return args->heads / kv->kv_heads; }
  std::int64_t row_of(int q) const { return row + (first + q) / group(); }
  std::int64_t offset_of(int q) const { return (head * group() + (first + q) % group()) * kv->head_dim; }
  std::int32_t position_of(int q) const { return args->rows[row_of(q)].position; }
};

// Lays the arrays out from `base`, or only measures when it is null; returns what they take.
static inline std::size_t lay_out(Batch& batch, std::int32_t head_dim, std::byte* base) {
  std::size_t used = 0;
  const auto take = [&](auto*& part, std::int64_t bytes) {
    if (base != nullptr) part = reinterpret_cast<std::remove_reference_t<decltype(part)>>(base + used);
    used += static_cast<std::size_t>((bytes + 63) / 64 * 64);
  };
  const std::int64_t row = kChunkTokens * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t part = part_floats(head_dim) * static_cast<std::int64_t>(sizeof(float));
  take(batch.queries, kQueryTiles * key_steps(head_dim) * kTileBytes);
  take(batch.keys, key_steps(head_dim) * avx512::kVectors * kTileBytes);
  take(batch.values, kChunkTokens / kKeySteps * value_vectors(head_dim) * kTileBytes);
  take(batch.weight_tiles, kWeightBytes);
  take(batch.key_scales, kv_groups(head_dim) * row);
  take(batch.value_scales, kv_groups(head_dim) * row);
  take(batch.weights, kTileRows * row);
  take(batch.group_scores, kTileRows * row);
  take(batch.parts, kTileRows * part);
  take(batch.sums, kBatchQueries * part);
  return used;
}

// Queries, scaled and rounded; rows and dimensions that are not there are zeros.
static inline void load_queries(const Batch& batch) {
  const std::int32_t head_dim = batch.kv->head_dim;
  for (int q = 0; q < (batch.count + kTileRows - 1) / kTileRows * kTileRows; ++q) {
    std::byte* tile_row = batch.queries + q / kTileRows * key_steps(head_dim) * kTileBytes + q % kTileRows * kTileRowBytes;
    const float* query = q < batch.count ? batch.args->queries + batch.row_of(q) * batch.args->query_stride + batch.offset_of(q) : nullptr;
    for (std::int32_t d = 0; d < key_steps(head_dim) * kKeySteps; d += 16) {
      const __mmask16 mask = query != nullptr ? avx512::first_lanes(head_dim - d) : __mmask16{0};
      const __m512 values = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, query + (mask != 0 ? d : 0)), _mm512_set1_ps(batch.args->scale));
      const __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bits(values), 16));
      std::byte* to = tile_row + d / kKeySteps * kTileBytes + d % kKeySteps * 2;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
    }
  }
}

// Four tiles side by side of x [steps, tile] times w, whose tiles are `step_bytes` apart from step to step and follow each other; out
// rows are `stride` bytes apart. kColumns is 4 or 1.
template <int kColumns, class Tiles>
static inline void multiply_columns(Tiles& tiles, const std::byte* x, const std::byte* w, std::int64_t step_bytes, std::int64_t steps,
                                    float* out, std::int64_t stride) {
  tiles.template zero<0>();
  if constexpr (kColumns == 4) {
    tiles.template zero<1>();
    tiles.template zero<2>();
    tiles.template zero<3>();
  }
  for (std::int64_t step = 0; step < steps; ++step, x += kTileBytes, w += step_bytes) {
    tiles.template load<4>(x, kTileRowBytes);
    tiles.template load<6>(w, kTileRowBytes);
    tiles.template multiply_bf16<0, 4, 6>();
    if constexpr (kColumns == 4) {
      tiles.template load<7>(w + kTileBytes, kTileRowBytes);
      tiles.template multiply_bf16<1, 4, 7>();
      tiles.template load<6>(w + 2 * kTileBytes, kTileRowBytes);
      tiles.template multiply_bf16<2, 4, 6>();
      tiles.template load<7>(w + 3 * kTileBytes, kTileRowBytes);
      tiles.template multiply_bf16<3, 4, 7>();
    }
  }
  tiles.template store<0>(out, stride);
  if constexpr (kColumns == 4) {
    tiles.template store<1>(out + 16, stride);
    tiles.template store<2>(out + 32, stride);
    tiles.template store<3>(out + 48, stride);
  }
}

// Scores of a tile of queries with vectors [first, last) of the chunk; others are computed too, and hold anything.
template <class Tiles>
static void score(Tiles& tiles, const Batch& batch, int tile, avx512::VectorRange range) {
  const std::int32_t head_dim = batch.kv->head_dim;
  const std::int64_t steps = key_steps(head_dim);
  const std::int64_t group_steps = batch.kv->type == KvType::kInt8 ? kKvGroup / kKeySteps : steps;
  const std::byte* queries = batch.queries + tile * steps * kTileBytes;
  for (std::int64_t step = 0; step < steps; step += group_steps) {
    const std::int64_t count = steps - step < group_steps ? steps - step : group_steps;
    float* scores = step == 0 ? batch.weights : batch.group_scores;
    for (std::int32_t v = range.first / 4 * 4; v < range.last; v += 4)
      multiply_columns<4>(tiles, queries + step * kTileBytes, batch.keys + (step * avx512::kVectors + v) * kTileBytes,
                          avx512::kVectors * kTileBytes, count, scores + v * 16, kChunkTokens * sizeof(float));
    if (batch.kv->type != KvType::kInt8) continue;
    const float* scales = batch.key_scales + step / group_steps * kChunkTokens;
    for (int q = 0; q < kTileRows; ++q) {
      for (std::int32_t v = range.first; v < range.last; ++v) {
        float* out = batch.weights + q * kChunkTokens + v * 16;
        const __m512 codes = _mm512_loadu_ps(scores + q * kChunkTokens + v * 16);
        const __m512 scale = _mm512_loadu_ps(scales + v * 16);
        _mm512_storeu_ps(out, step == 0 ? _mm512_mul_ps(codes, scale) : _mm512_fmadd_ps(codes, scale, _mm512_loadu_ps(out)));
      }
    }
  }
}

// The tile's weights as bf16 for position steps [first, last), of kInt8 times a group's value scales; zeros where nothing is seen.
static inline void round_weights(const Batch& batch, int tile, std::int32_t chunk, std::int32_t first, std::int32_t last,
                                 const float* scales) {
  for (int i = 0; i < kTileRows; ++i) {
    const int q = tile * kTileRows + i;
    const bool seeing = q < batch.count && sees(batch.view[q], chunk);
    for (std::int32_t v = first * 2; v < last * 2; ++v) {
      const __mmask16 mask = seeing ? avx512::seen_lanes(batch.view[q], chunk, v) : __mmask16{0};
      __m512 weights = _mm512_maskz_loadu_ps(mask, batch.weights + i * kChunkTokens + v * 16);
      if (scales != nullptr) weights = _mm512_maskz_mul_ps(mask, weights, _mm512_loadu_ps(scales + v * 16));
      const __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bits(weights), 16));
      std::byte* to = batch.weight_tiles + v / 2 * kTileBytes + i * kTileRowBytes + v % 2 * 32;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
    }
  }
}

// Weighted values of a tile of queries over vectors [range.first, range.last) of positions, into the parts.
template <class Tiles>
static void add_values(Tiles& tiles, const Batch& batch, int tile, std::int32_t chunk, avx512::VectorRange range) {
  const std::int64_t vectors = value_vectors(batch.kv->head_dim);
  const std::int64_t group_vectors = batch.kv->type == KvType::kInt8 ? kKvGroup / 16 : vectors;
  const std::int32_t first = range.first / 2;
  const std::int32_t last = (range.last + 1) / 2;
  const std::byte* x = batch.weight_tiles + first * kTileBytes;
  const auto stride = part_floats(batch.kv->head_dim) * static_cast<std::int64_t>(sizeof(float));
  for (std::int64_t begin = 0; begin < vectors; begin += group_vectors) {
    const std::int64_t end = vectors - begin < group_vectors ? vectors : begin + group_vectors;
    const bool scaled = batch.kv->type == KvType::kInt8;
    round_weights(batch, tile, chunk, first, last, scaled ? batch.value_scales + begin / group_vectors * kChunkTokens : nullptr);
    const auto columns = [&](std::int64_t v) { return batch.values + (first * vectors + v) * kTileBytes; };
    const auto out = [&](std::int64_t v) { return batch.parts + kPartHeader + v * 16; };
    std::int64_t v = begin;
    for (; v + 4 <= end; v += 4) multiply_columns<4>(tiles, x, columns(v), vectors * kTileBytes, last - first, out(v), stride);
    for (; v < end; ++v) multiply_columns<1>(tiles, x, columns(v), vectors * kTileBytes, last - first, out(v), stride);
  }
}

// The parts of one tile of queries over the chunk at hand; false when none of them sees any of it.
template <class Tiles>
static bool compute_parts(Tiles& tiles, const Batch& batch, int tile, std::int32_t chunk) {
  const int first = tile * kTileRows;
  const int last = first + kTileRows < batch.count ? first + kTileRows : batch.count;
  avx512::VectorRange range{avx512::kVectors, 0};
  for (int q = first; q < last; ++q) {
    if (!sees(batch.view[q], chunk)) continue;
    const avx512::VectorRange own = avx512::vectors_of(batch.view[q], chunk);
    range.first = own.first < range.first ? own.first : range.first;
    range.last = own.last > range.last ? own.last : range.last;
  }
  if (range.first >= range.last) return false;
  score(tiles, batch, tile, range);
  for (int q = first; q < last; ++q) {
    if (sees(batch.view[q], chunk))
      avx512::soften(batch.view[q], chunk, batch.args->score_cap, batch.weights + (q - first) * kChunkTokens,
                     batch.parts + (q - first) * part_floats(batch.kv->head_dim));
  }
  add_values(tiles, batch, tile, chunk, range);
  return true;
}

// Views of the chunk, and its keys and values as tiles; false when no query of the batch sees any of it.
static inline bool start_chunk(Batch& batch, std::int32_t chunk) {
  std::int32_t begin = chunk + kChunkTokens;
  std::int32_t end = chunk;
  for (int q = 0; q < batch.count; ++q) {
    const ChunkView view = view_of_chunk(*batch.args, batch.position_of(q), chunk);
    batch.view[q] = view;
    if (!sees(view, chunk)) continue;
    const std::int32_t own_begin = view.sink_end > chunk ? chunk : view.begin;
    const std::int32_t own_end = view.begin < view.end ? view.end : view.sink_end;
    begin = own_begin < begin ? own_begin : begin;
    end = own_end > end ? own_end : end;
  }
  if (begin >= end) return false;
  const std::int32_t* blocks = batch.args->rows[batch.row].blocks;
  expand({*batch.kv, blocks, batch.head, chunk, begin, end}, batch.keys, batch.values);
  if (batch.kv->type == KvType::kInt8)
    avx512::load_scales(*batch.kv, blocks, batch.head, chunk, end, batch.key_scales, batch.value_scales);
  return true;
}

template <class Tiles>
static void attend(Tiles& tiles, Batch& batch) {
  const std::int64_t part = part_floats(batch.kv->head_dim);
  const std::int32_t first_position = batch.position_of(0);
  const std::int32_t last_position = batch.position_of(batch.count - 1);
  bool begun[kBatchQueries] = {};
  load_queries(batch);
  for (std::int32_t chunk = first_chunk(*batch.args, first_position); chunk <= last_position;
       chunk = next_chunk(*batch.args, first_position, chunk)) {
    if (!start_chunk(batch, chunk)) continue;
    for (int tile = 0; tile * kTileRows < batch.count; ++tile) {
      if (!compute_parts(tiles, batch, tile, chunk)) continue;
      for (int q = tile * kTileRows; q < batch.count && q < (tile + 1) * kTileRows; ++q) {
        if (!sees(batch.view[q], chunk)) continue;
        const float* own = batch.parts + q % kTileRows * part;
        if (begun[q]) {
          avx512::join(own, batch.kv->head_dim, batch.sums + q * part);
        } else {
          __builtin_memcpy(batch.sums + q * part, own, static_cast<std::size_t>(part) * sizeof(float));
        }
        begun[q] = true;
      }
    }
  }
  for (int q = 0; q < batch.count; ++q)
    avx512::finish(batch.sums + q * part, batch.kv->head_dim,
                   batch.args->out + batch.row_of(q) * batch.args->out_stride + batch.offset_of(q));
}

template <class Tiles>
static void attend_rows(Tiles& tiles, const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t head_begin,
                        std::int32_t head_end) {
  Batch batch;
  batch.args = &args;
  batch.kv = args.kv;
  lay_out(batch, args.kv->head_dim, args.scratch);
  tiles.configure(tile_config(kTileRows));
  for (batch.head = head_begin; batch.head < head_end; ++batch.head) {
    for (batch.row = row_begin; batch.row < row_end;) {
      std::int64_t end = batch.row + 1;  // rows of one sequence
      while (end < row_end && args.rows[end].blocks == args.rows[batch.row].blocks) ++end;
      const std::int64_t queries = (end - batch.row) * batch.group();
      for (batch.first = 0; batch.first < queries; batch.first += kBatchQueries) {
        batch.count = static_cast<int>(queries - batch.first < kBatchQueries ? queries - batch.first : kBatchQueries);
        attend(tiles, batch);
      }
      batch.row = end;
    }
  }
  tiles.release();
}

template <class Tiles>
static void attend_part(Tiles& tiles, const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) {
  const std::int64_t part = part_floats(args.kv->head_dim);
  Batch batch;
  batch.args = &args;
  batch.kv = args.kv;
  batch.head = kv_head;
  batch.row = row;
  lay_out(batch, args.kv->head_dim, args.scratch);
  tiles.configure(tile_config(kTileRows));
  for (batch.first = 0; batch.first < batch.group(); batch.first += kBatchQueries) {
    batch.count = static_cast<int>(batch.group() - batch.first < kBatchQueries ? batch.group() - batch.first : kBatchQueries);
    load_queries(batch);
    start_chunk(batch, chunk);
    for (int tile = 0; tile * kTileRows < batch.count; ++tile) {
      const int rows = batch.count - tile * kTileRows < kTileRows ? batch.count - tile * kTileRows : kTileRows;
      compute_parts(tiles, batch, tile, chunk);
      __builtin_memcpy(parts + (batch.first + tile * kTileRows) * part, batch.parts, static_cast<std::size_t>(rows * part) * sizeof(float));
    }
  }
  tiles.release();
}

}  // namespace braid::kernels::amx
