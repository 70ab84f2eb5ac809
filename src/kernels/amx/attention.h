// Attention by bf16 tiles, for any implementation of the tile instructions. The chunks, views, softmax and joining are those of
// scalar/attention.cpp; queries, keys, weights and values are rounded to bf16, and sums stay floats. Up to
// kBatchQueries queries (the heads that share a KV head, and the next rows of the same sequence) share a chunk's expanded keys and values,
// and a tile of these meets kPairTiles tiles of queries. A query's result does not depend on the others: a tile's rows are independent,
// and a position that a query does not see meets it with a weight of zero. One row goes through the same products as many.
//
// Limit: of one tile of queries and one chunk of head size 64, the 64 tile products take 1,024 cycles and the softmax of its 4,096 scores
// about twice that (soften.h); of one row, reading its keys and values.
#pragma once

#include "kernels/amx/soften.h"
#include "kernels/cache_hints.h"

namespace braid::kernels::amx {

// Where the result of a band's products goes; from row to row `stride` floats.
struct Result {
  float* data;
  std::int64_t stride;
};

// The scores of a band: queries times keys. A step is a product's dimensions, a column the positions of a vector.
struct ScoreOperands {
  using Own = ScoreTiles;
  const Lines& lines;
  const std::byte* queries;  // [tiles, steps, tile]
  std::int64_t steps;

  const std::byte* x(std::int64_t step, std::int64_t tile) const { return queries + (tile * steps + step) * kTileBytes; }
  const std::byte* w(std::int64_t step, std::int64_t column) const { return lines.at[column] + step * kTileRows * lines.stride; }
  void fetch_ahead(std::int64_t step, std::int64_t column) const {
    const std::byte* from = lines.ahead[column] + step * kTileRows * lines.stride;
    for (int line = 0; line < kTileRows; ++line) fetch(from + line * lines.stride);
  }
};

// Its weighted values. A step is the positions of a vector, a column 16 dimensions.
struct ValueOperands {
  using Own = ValueTiles;
  const Lines& lines;
  const std::byte* weights;  // [tiles, kWeightTiles, tile]

  const std::byte* x(std::int64_t step, std::int64_t tile) const {
    return weights + (tile * kWeightTiles + step / 2) * kTileBytes + step % 2 * kValuePositions * 2;
  }
  const std::byte* w(std::int64_t step, std::int64_t column) const { return lines.at[step] + column * kTileRowBytes; }
  void fetch_ahead(std::int64_t step, std::int64_t column) const {
    const std::byte* from = lines.ahead[step] + column * kTileRowBytes;
    for (int line = 0; line < kValueLines; ++line) fetch(from + line * lines.stride);
  }
};

// kTiles tiles of queries times kColumns columns of w from `column` on, over steps [first, last); kTiles * kColumns is at most 4.
template <int kTiles, int kColumns, bool kFetch, class Tiles, class Operands>
static inline void multiply(Tiles& tiles, const Operands& of, std::int64_t column, std::int64_t first, std::int64_t last, Result out) {
  using Own = typename Operands::Own;
  tiles.template zero<0>();
  if constexpr (kTiles * kColumns > 1) tiles.template zero<1>();
  if constexpr (kTiles * kColumns > 2) tiles.template zero<2>();
  if constexpr (kTiles * kColumns > 2) tiles.template zero<3>();
  for (std::int64_t step = first; step < last; ++step) {
    const auto load_x = [&](int tile) { tiles.template load<Own::kX>(of.x(step, tile), kTileRowBytes); };
    const auto load_w = [&](int i) {
      tiles.template load<Own::kW>(of.w(step, column + i), of.lines.stride);
      if constexpr (kFetch) of.fetch_ahead(step, column + i);
    };
    load_x(0);
    load_w(0);
    tiles.template multiply_bf16<0, Own::kX, Own::kW>();
    if constexpr (kTiles == 1) {
      if constexpr (kColumns > 1) load_w(1), tiles.template multiply_bf16<1, Own::kX, Own::kW>();
      if constexpr (kColumns > 2) load_w(2), tiles.template multiply_bf16<2, Own::kX, Own::kW>();
      if constexpr (kColumns > 2) load_w(3), tiles.template multiply_bf16<3, Own::kX, Own::kW>();
    } else {
      load_x(1);
      tiles.template multiply_bf16<kColumns, Own::kX, Own::kW>();
      if constexpr (kColumns > 1) {
        load_w(1);
        tiles.template multiply_bf16<kColumns + 1, Own::kX, Own::kW>();
        load_x(0);
        tiles.template multiply_bf16<1, Own::kX, Own::kW>();
      }
    }
  }
  const std::int64_t row_bytes = out.stride * static_cast<std::int64_t>(sizeof(float));
  const auto place = [&](int sum) { return out.data + sum / kColumns * kTileRows * out.stride + sum % kColumns * 16; };
  tiles.template store<0>(place(0), row_bytes);
  if constexpr (kTiles * kColumns > 1) tiles.template store<1>(place(1), row_bytes);
  if constexpr (kTiles * kColumns > 2) tiles.template store<2>(place(2), row_bytes);
  if constexpr (kTiles * kColumns > 2) tiles.template store<3>(place(3), row_bytes);
}

// The products for columns [begin, end) of w and of out.
template <int kTiles, bool kFetch, class Tiles, class Operands>
static inline void multiply_columns(Tiles& tiles, const Operands& of, std::int64_t begin, std::int64_t end, std::int64_t first,
                                    std::int64_t last, Result out) {
  constexpr int kColumns = 4 / kTiles;
  std::int64_t column = begin;
  const auto at = [&] { return Result{out.data + column * 16, out.stride}; };
  for (; column + kColumns <= end; column += kColumns) multiply<kTiles, kColumns, kFetch>(tiles, of, column, first, last, at());
  for (; column < end; ++column) multiply<kTiles, 1, kFetch>(tiles, of, column, first, last, at());
}

// Scores of the band with vectors [range.first, range.last) of the chunk, and then its weighted values, into the parts. With kFetch what
// comes next is fetched meanwhile.
template <int kTiles, bool kFetch, class Tiles>
static void attend_band(Tiles& tiles, const Batch& batch, const Band& band, std::int32_t chunk) {
  const std::int64_t steps = key_steps(batch.kv->head_dim);
  const ScoreOperands scores{batch.keys, batch.queries + band.first / kTileRows * steps * kTileBytes, steps};
  multiply_columns<kTiles, kFetch>(tiles, scores, band.range.first, band.range.last, 0, steps, {batch.scores, kScoreStride});
  soften_band(batch, band, chunk);
  const ValueOperands values{batch.values, batch.weight_tiles};
  multiply_columns<kTiles, kFetch>(tiles, values, 0, value_vectors(batch.kv->head_dim), band.range.first, band.range.last,
                                   {batch.parts + kPartHeader, batch.part()});
}

// Splits the batch into bands; computes the parts of each that sees something of the chunk, and hands the band to `use`.
template <class Tiles, class Use>
static void for_bands(Tiles& tiles, const Batch& batch, std::int32_t chunk, const Use& use) {
  const bool in_place = holds_tiles(*batch.kv);
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
    if (in_place && first == 0) {
      both ? attend_band<2, true>(tiles, batch, band, chunk) : attend_band<1, true>(tiles, batch, band, chunk);
    } else {
      both ? attend_band<2, false>(tiles, batch, band, chunk) : attend_band<1, false>(tiles, batch, band, chunk);
    }
    use(band);
  }
}

// Views of the chunk, and its keys and values as tiles; false when no query of the batch sees any of it.
static inline bool start_chunk(Batch& batch, std::int32_t chunk) {
  std::int32_t begin = chunk + kChunkTokens;
  std::int32_t end = chunk;
  std::int32_t gap_begin = chunk;
  std::int32_t gap_end = chunk + kChunkTokens;
  for (int r = 0; r < batch.rows(); ++r) {
    const ChunkView view = view_of_chunk(*batch.args, batch.position(r), chunk);
    batch.views[r] = view;
    if (!sees(view, chunk)) continue;
    const std::int32_t own_begin = view.sink_end > chunk ? chunk : view.begin;
    const std::int32_t own_end = view.begin < view.end ? view.end : view.sink_end;
    begin = own_begin < begin ? own_begin : begin;
    end = own_end > end ? own_end : end;
    gap_begin = view.sink_end > gap_begin ? view.sink_end : gap_begin;
    gap_end = view.begin < view.end && view.begin < gap_end ? view.begin : gap_end;
  }
  if (begin >= end) return false;
  const std::int32_t* blocks = batch.args->rows[batch.first_row].blocks;
  expand({*batch.kv, blocks, batch.head, chunk, begin, end, gap_begin, gap_end, batch.position(batch.rows() - 1), batch.next}, batch.keys,
         batch.values);
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
static void attend(Tiles& tiles, Batch& batch) {
  const std::int32_t first_position = batch.position(0);
  const std::int32_t last_position = batch.position(batch.rows() - 1);
  __mmask16 begun[kBatchQueries / 16] = {};
  for (std::int32_t chunk = first_chunk(*batch.args, first_position); chunk <= last_position;
       chunk = next_chunk(*batch.args, first_position, chunk)) {
    if (!start_chunk(batch, chunk)) continue;
    for_bands(tiles, batch, chunk, [&](const Band& band) { join(batch, band, chunk, begun); });
  }
  const auto out = [&](int q) { return batch.args->out + batch.query_row(q) * batch.args->out_stride + batch.head_offset(q); };
  const int ahead = static_cast<int>(kRowsAhead) * batch.group;
  for (int q = 0; q < batch.count; ++q) {
    for (std::int32_t d = 0; d < batch.kv->head_dim && q + ahead < batch.count; d += 16) prefetch_for_write(out(q + ahead) + d);
    float* sum = batch.sums + q * batch.part();
    sum[1] = batch.sum_tops->total[q];
    if (batch.args->sinks != nullptr) {
      sum[0] = batch.sum_tops->top[q];
      avx512::join_sink(batch.args->sinks[batch.head * batch.group + batch.head_of[q]], batch.kv->head_dim, sum);
    }
    avx512::finish(sum, batch.kv->head_dim, out(q));
  }
}

// Goes through the queries of `rows` rows from `row` on, as many at a time as fit.
template <class Tiles, class Use>
static void for_batches(Tiles& tiles, Batch& batch, std::int64_t row, std::int64_t rows, int& height, const Use& use) {
  const std::int64_t queries = rows * batch.group;
  for (std::int64_t first = 0; first < queries; first += kBatchQueries) {
    batch.first_row = row + first / batch.group;
    batch.first_head = static_cast<std::int32_t>(first % batch.group);
    batch.count = static_cast<int>(queries - first < kBatchQueries ? queries - first : kBatchQueries);
    const int tile_rows = batch.count < kTileRows ? batch.count : kTileRows;
    if (tile_rows != height) tiles.configure(attention_config(tile_rows));
    height = tile_rows;
    load_queries(batch);
    use(first);
  }
}

static inline Batch make_batch(const AttentionArgs& args) {
  Batch batch;
  batch.args = &args;
  batch.kv = args.kv;
  batch.group = args.heads / args.kv->kv_heads;
  lay_out(batch, args.kv->head_dim, args.scratch);
  return batch;
}

template <class Tiles>
static void attend_rows(Tiles& tiles, const AttentionArgs& args, std::int64_t row_begin, std::int64_t row_end, std::int32_t head_begin,
                        std::int32_t head_end) {
  Batch batch = make_batch(args);
  int height = 0;
  for (batch.head = head_begin; batch.head < head_end; ++batch.head) {
    for (std::int64_t row = row_begin; row < row_end;) {
      std::int64_t end = row + 1;  // rows of one sequence
      while (end < row_end && args.rows[end].blocks == args.rows[row].blocks) ++end;
      batch.next = next_context(args, batch.head, end, row_begin, row_end);
      for_batches(tiles, batch, row, end - row, height, [&](std::int64_t) { attend(tiles, batch); });
      row = end;
    }
  }
  tiles.reset();
}

template <class Tiles>
static void attend_part(Tiles& tiles, const AttentionArgs& args, std::int64_t row, std::int32_t kv_head, std::int32_t chunk, float* parts) {
  Batch batch = make_batch(args);
  batch.head = kv_head;
  int height = 0;
  for_batches(tiles, batch, row, 1, height, [&](std::int64_t first) {
    start_chunk(batch, chunk);
    for_bands(tiles, batch, chunk, [&](const Band& band) {
      for (int i = 0; i < band.count; ++i) {
        float* part = parts + (first + band.first + i) * batch.part();
        __builtin_memcpy(part, batch.parts + i * batch.part(), static_cast<std::size_t>(batch.part()) * sizeof(float));
        part[0] = batch.part_tops->top[i];
        part[1] = batch.part_tops->total[i];
      }
    });
  });
  tiles.reset();
}

}  // namespace braid::kernels::amx
