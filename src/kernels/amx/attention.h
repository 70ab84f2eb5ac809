// Attention by bf16 tiles, for any implementation of the tile instructions. The chunks, views, softmax and joining are those of
// scalar/attention.cpp; queries, keys, weights and values are rounded to bf16, and sums stay floats. Up to
// kBatchQueries queries (the heads that share a KV head, and the next rows of the same sequence) share a chunk's expanded keys and values,
// and a tile of these meets kPairTiles tiles of queries. A query's result does not depend on the others: a tile's rows are independent,
// and a position that a query does not see meets it with a weight of zero. One row goes through the same products as many.
//
// Limit: of one tile of queries and one chunk of head size 64, the 64 tile products take 1,024 cycles and the softmax of its 4,096 scores
// about twice that (soften.h); of one row, reading its keys and values.
#pragma once

#include <kernels/amx/soften.h>

namespace braid::kernels::amx {

// Where a band's operand or result lies, in bytes: from a tile of queries to the next, and from row to row of the result.
struct Operand {
  const std::byte* data;
  std::int64_t tile_bytes;
};
struct Result {
  float* data;
  std::int64_t row_floats;
};

// kTiles tiles of queries x [steps, tile] times kColumns neighbouring tiles of w, which are `step_bytes` apart from step to step; kTiles *
// kColumns is at most 4.
template <int kTiles, int kColumns, class Tiles>
static inline void multiply(Tiles& tiles, Operand x, const std::byte* w, std::int64_t step_bytes, std::int64_t steps, Result out) {
  tiles.template zero<0>();
  if constexpr (kTiles * kColumns > 1) tiles.template zero<1>();
  if constexpr (kTiles * kColumns > 2) tiles.template zero<2>();
  if constexpr (kTiles * kColumns > 2) tiles.template zero<3>();
  const std::byte* from = x.data;
  const auto column = [&]<int kColumn>() {
    constexpr int kW = 6 + kColumn % 2;
    tiles.template load<kW>(w + kColumn * kTileBytes, kTileRowBytes);
    tiles.template multiply_bf16<kColumn, 4, kW>();
    if constexpr (kTiles == 2) tiles.template multiply_bf16<kColumns + kColumn, 5, kW>();
  };
  for (std::int64_t step = 0; step < steps; ++step, from += kTileBytes, w += step_bytes) {
    tiles.template load<4>(from, kTileRowBytes);
    if constexpr (kTiles == 2) tiles.template load<5>(from + x.tile_bytes, kTileRowBytes);
    column.template operator()<0>();
    if constexpr (kColumns > 1) column.template operator()<1>();
    if constexpr (kColumns > 2) column.template operator()<2>();
    if constexpr (kColumns > 2) column.template operator()<3>();
  }
  const std::int64_t row_bytes = out.row_floats * static_cast<std::int64_t>(sizeof(float));
  const auto place = [&](int sum) { return out.data + sum / kColumns * kTileRows * out.row_floats + sum % kColumns * 16; };
  tiles.template store<0>(place(0), row_bytes);
  if constexpr (kTiles * kColumns > 1) tiles.template store<1>(place(1), row_bytes);
  if constexpr (kTiles * kColumns > 2) tiles.template store<2>(place(2), row_bytes);
  if constexpr (kTiles * kColumns > 2) tiles.template store<3>(place(3), row_bytes);
}

// The products for columns [begin, end) of w and of out; with kPadded columns up to whole groups are computed, too, and hold anything.
template <int kTiles, bool kPadded, class Tiles>
static inline void multiply_columns(Tiles& tiles, Operand x, const std::byte* w, std::int64_t step_bytes, std::int64_t steps,
                                    std::int64_t begin, std::int64_t end, Result out) {
  constexpr int kColumns = 4 / kTiles;
  std::int64_t v = kPadded ? begin / kColumns * kColumns : begin;
  const auto at = [&] { return Result{out.data + v * 16, out.row_floats}; };
  for (; kPadded ? v < end : v + kColumns <= end; v += kColumns)
    multiply<kTiles, kColumns>(tiles, x, w + v * kTileBytes, step_bytes, steps, at());
  for (; v < end; ++v) multiply<kTiles, 1>(tiles, x, w + v * kTileBytes, step_bytes, steps, at());
}

// Scores of the band with vectors [range.first, range.last) of the chunk; others are computed too, and hold anything.
template <int kTiles, class Tiles>
static void score(Tiles& tiles, const Batch& batch, const Band& band) {
  const std::int64_t steps = key_steps(batch.kv->head_dim);
  multiply_columns<kTiles, true>(tiles, {batch.queries + band.first / kTileRows * steps * kTileBytes, steps * kTileBytes}, batch.keys,
                                 avx512::kVectors * kTileBytes, steps, band.range.first, band.range.last, {batch.scores, kScoreStride});
}

// Weighted values of the band, into the parts.
template <int kTiles, class Tiles>
static void add_values(Tiles& tiles, const Batch& batch, const Band& band) {
  const std::int64_t vectors = value_vectors(batch.kv->head_dim);
  const std::int32_t first = band.first_step();
  multiply_columns<kTiles, false>(tiles, {batch.weight_tiles + first * kTileBytes, kWeightTiles * kTileBytes},
                                  batch.values + first * vectors * kTileBytes, vectors * kTileBytes, band.last_step() - first, 0, vectors,
                                  {batch.parts + kPartHeader, batch.part()});
}

// Splits the batch into bands; computes the parts of each that sees something of the chunk, and hands the band to `use`.
template <class Tiles, class Use>
static void for_bands(Tiles& tiles, const Batch& batch, std::int32_t chunk, const Use& use) {
  for (int first = 0; first < batch.count; first += kBandQueries) {
    Band band{first, batch.count - first < kBandQueries ? batch.count - first : kBandQueries, {avx512::kVectors, 0}};
    for (int r = batch.row_of[first]; r <= batch.row_of[first + band.count - 1]; ++r) {
      if (!sees(batch.views[r], chunk)) continue;
      const avx512::VectorRange own = avx512::vectors_of(batch.views[r], chunk);
      band.range.first = own.first < band.range.first ? own.first : band.range.first;
      band.range.last = own.last > band.range.last ? own.last : band.range.last;
    }
    if (band.range.first >= band.range.last) continue;
    const bool both = band.count > kTileRows;
    both ? score<2>(tiles, batch, band) : score<1>(tiles, batch, band);
    soften_band(batch, band, chunk);
    both ? add_values<2>(tiles, batch, band) : add_values<1>(tiles, batch, band);
    use(band);
  }
}

// Views of the chunk, and its keys and values as tiles; false when no query of the batch sees any of it.
static inline bool start_chunk(const Batch& batch, std::int32_t chunk) {
  std::int32_t begin = chunk + kChunkTokens;
  std::int32_t end = chunk;
  for (int r = 0; r < batch.rows(); ++r) {
    const ChunkView view = view_of_chunk(*batch.args, batch.position(r), chunk);
    batch.views[r] = view;
    if (!sees(view, chunk)) continue;
    const std::int32_t own_begin = view.sink_end > chunk ? chunk : view.begin;
    const std::int32_t own_end = view.begin < view.end ? view.end : view.sink_end;
    begin = own_begin < begin ? own_begin : begin;
    end = own_end > end ? own_end : end;
  }
  if (begin >= end) return false;
  const std::int32_t* blocks = batch.args->rows[batch.row].blocks;
  expand({*batch.kv, blocks, batch.head, chunk, begin, end, batch.position(batch.rows() - 1), batch.next}, batch.keys, batch.values);
  return true;
}

// Joins the band's parts to the sums, the tops of 16 queries at a time; the same arithmetic as avx512::join. begun: [kBatchQueries / 16],
// which queries have a sum.
static inline void join(const Batch& batch, const Band& band, std::int32_t chunk, __mmask16* begun) {
  for (int i = 0; i < band.count; i += 16) {
    unsigned lanes = 0;
    for (int q = i; q < i + 16 && q < band.count; ++q) lanes |= sees(batch.view(band.first + q), chunk) ? 1U << (q - i) : 0U;
    const auto seeing = static_cast<__mmask16>(lanes);
    const __mmask16 joining = begun[(band.first + i) / 16];
    const __m512 part_top = _mm512_load_ps(batch.part_tops->top + i);
    const __m512 part_total = _mm512_load_ps(batch.part_tops->total + i);
    const __m512 sum_top = _mm512_load_ps(batch.sum_tops->top + band.first + i);
    const __m512 top = _mm512_mask_max_ps(part_top, joining, part_top, sum_top);
    alignas(64) float old[16];
    alignas(64) float added[16];
    _mm512_store_ps(old, avx512::exp(_mm512_sub_ps(sum_top, top)));
    _mm512_store_ps(added, avx512::exp(_mm512_sub_ps(part_top, top)));
    const __m512 added_total = _mm512_mul_ps(part_total, _mm512_load_ps(added));
    const __m512 old_total = _mm512_load_ps(batch.sum_tops->total + band.first + i);
    const __m512 joined = _mm512_fmadd_ps(old_total, _mm512_load_ps(old), added_total);
    _mm512_mask_store_ps(batch.sum_tops->top + band.first + i, seeing, top);
    _mm512_mask_store_ps(batch.sum_tops->total + band.first + i, seeing, _mm512_mask_mov_ps(part_total, joining, joined));
    for (int q = i; q < i + 16 && q < band.count; ++q) {
      if ((lanes >> (q - i) & 1U) == 0) continue;
      const float* part = batch.parts + q * batch.part() + kPartHeader;
      float* sum = batch.sums + (band.first + q) * batch.part() + kPartHeader;
      const bool first = (joining >> (q - i) & 1) == 0;
      const __m512 old_weight = _mm512_set1_ps(old[q - i]);
      const __m512 added_weight = _mm512_set1_ps(added[q - i]);
      for (std::int32_t d = 0; d < batch.kv->head_dim; d += 16) {
        const __m512 values = _mm512_loadu_ps(part + d);
        const __m512 weighted = _mm512_fmadd_ps(_mm512_loadu_ps(sum + d), old_weight, _mm512_mul_ps(values, added_weight));
        _mm512_storeu_ps(sum + d, first ? values : weighted);
      }
    }
    begun[(band.first + i) / 16] = static_cast<__mmask16>(joining | seeing);
  }
}

template <class Tiles>
static void attend(Tiles& tiles, const Batch& batch) {
  const std::int32_t first_position = batch.position(0);
  const std::int32_t last_position = batch.position(batch.rows() - 1);
  __mmask16 begun[kBatchQueries / 16] = {};
  for (std::int32_t chunk = first_chunk(*batch.args, first_position); chunk <= last_position;
       chunk = next_chunk(*batch.args, first_position, chunk)) {
    if (!start_chunk(batch, chunk)) continue;
    for_bands(tiles, batch, chunk, [&](const Band& band) { join(batch, band, chunk, begun); });
  }
  for (int q = 0; q < batch.count; ++q) {
    float* sum = batch.sums + q * batch.part();
    sum[1] = batch.sum_tops->total[q];
    avx512::finish(sum, batch.kv->head_dim,
                   batch.args->out + (batch.first_row() + batch.row_of[q]) * batch.args->out_stride + batch.head_offset(q));
  }
}

// Goes through `queries` queries from the batch's row on, as many at a time as fit.
template <class Tiles, class Use>
static void for_batches(Tiles& tiles, Batch& batch, std::int64_t queries, int& height, const Use& use) {
  for (batch.first = 0; batch.first < queries; batch.first += kBatchQueries) {
    batch.count = static_cast<int>(queries - batch.first < kBatchQueries ? queries - batch.first : kBatchQueries);
    const int rows = batch.count < kTileRows ? batch.count : kTileRows;
    if (rows != height) tiles.configure(tile_config(rows));
    height = rows;
    load_queries(batch);
    use();
  }
}

template <class Tiles>
static void attend_rows(Tiles& tiles, const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t head_begin,
                        std::int32_t head_end) {
  Batch batch;
  batch.args = &args;
  batch.kv = args.kv;
  lay_out(batch, args.kv->head_dim, args.scratch);
  int height = 0;
  for (batch.head = head_begin; batch.head < head_end; ++batch.head) {
    for (batch.row = row_begin; batch.row < row_end;) {
      std::int64_t end = batch.row + 1;  // rows of one sequence
      while (end < row_end && args.rows[end].blocks == args.rows[batch.row].blocks) ++end;
      batch.next = next_context(args, batch.head, end, row_begin, row_end);
      for_batches(tiles, batch, (end - batch.row) * batch.group(), height, [&] { attend(tiles, batch); });
      batch.row = end;
    }
  }
  tiles.release();
}

template <class Tiles>
static void attend_part(Tiles& tiles, const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) {
  Batch batch;
  batch.args = &args;
  batch.kv = args.kv;
  batch.head = kv_head;
  batch.row = row;
  lay_out(batch, args.kv->head_dim, args.scratch);
  int height = 0;
  for_batches(tiles, batch, batch.group(), height, [&] {
    start_chunk(batch, chunk);
    for_bands(tiles, batch, chunk, [&](const Band& band) {
      for (int i = 0; i < band.count; ++i) {
        float* part = parts + (batch.first + band.first + i) * batch.part();
        __builtin_memcpy(part, batch.parts + i * batch.part(), static_cast<std::size_t>(batch.part()) * sizeof(float));
        part[0] = batch.part_tops->top[i];
        part[1] = batch.part_tops->total[i];
      }
    });
  });
  tiles.release();
}

}  // namespace braid::kernels::amx
