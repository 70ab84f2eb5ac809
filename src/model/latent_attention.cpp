#include "model/latent_attention.h"

#include "model/norm.h"

#include <algorithm>
#include <array>

namespace braid::model {

void LatentAttention::project(const step::Pass& pass, const LayerShape& shape, const LayerWeights& layer, const kernels::KvLayer& pool,
                              std::int32_t group, Workspace& space) const {
  const AttentionShape& attention = shape.attention;
  const LatentShape& latent = *attention.latent;
  const LatentWeights& weights = layer.attention.latent;
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const bool narrow = latent.query_down.outputs > 0;
  const Product query{&layer.attention.query.matrix, space.head_queries};
  const std::array first{narrow ? Product{&weights.query_down.matrix, space.narrow_query} : query,
                         Product{&layer.attention.key.matrix, space.key}};
  products_.run(first, rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  });
  products_.add_bias(weights.query_down, space.narrow_query, rows);
  products_.add_bias(layer.attention.key, space.key, rows);
  if (narrow) {
    products_.run({&query, 1}, rows, space, [&](std::int64_t row, float* scratch) {
      normalise(table_, latent.query_down_norm, space.adapted.norm(row, weights.query_down_norm), space.narrow_query[row], scratch);
      return scratch;
    });
  }
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const step::PassToken& token = pass.tokens[static_cast<std::size_t>(row)];
      space.attention_rows[row] = {.blocks = pass.table(token, group), .position = token.position};
      finish(space.attention_rows[row], row, attention, weights, pool, space);
      space.attention_rows[row].position += token.ahead;
      space.attention_ahead[row] = token.ahead;
    }
  });
  multiply_heads(rows, weights.key_up, space.head_queries, latent.plain + latent.rotated, space.query, attention.head_dim, space);
}

void LatentAttention::finish(const kernels::AttentionRow& token, std::int64_t row, const AttentionShape& shape,
                             const LatentWeights& weights, const kernels::KvLayer& pool, Workspace& space) const {
  const LatentShape& latent = *shape.latent;
  const auto rotary = static_cast<std::size_t>(shape.rotary);
  const auto rotate = [&](float* x) {
    const Angles& angles = space.angles[rotary];
    table_.rope(x, 1, latent.rotated, latent.rotated, angles.cos_of(row), angles.sin_of(row), model_.rotary[rotary].interleaved);
  };
  for (std::int32_t head = 0; head < shape.heads; ++head) {
    float* rotated = space.head_queries[row] + std::int64_t{head} * (latent.plain + latent.rotated) + latent.plain;
    rotate(rotated);
    std::copy_n(rotated, latent.rotated, space.query[row] + std::int64_t{head} * shape.head_dim + latent.rank);
  }
  float* key = space.key[row];
  normalise(table_, latent.norm, space.adapted.norm(row, weights.norm), key, key);
  rotate(key + latent.rank);
  table_.kv_store(pool, token.blocks[token.position / pool.block_tokens], token.position % pool.block_tokens, key, nullptr);
}

void LatentAttention::expand(std::int64_t rows, const AttentionShape& shape, const LatentWeights& weights, Workspace& space) const {
  multiply_heads(rows, weights.value_up, space.attended, shape.head_dim, space.latent_values, shape.latent->value_dim, space);
}

void LatentAttention::multiply_heads(std::int64_t rows, const std::vector<LinearWeights>& heads, const Rows& in, std::int64_t in_step,
                                     const Rows& out, std::int64_t out_step, Workspace& space) const {
  const kernels::PackedMatrix& first = heads.front().matrix;
  const auto count = static_cast<std::int64_t>(heads.size());
  const std::size_t stride = prepared_stride(table_, first, rows);
  const auto prepared_of = [&](std::int64_t head) { return space.prepared + static_cast<std::size_t>(head) * stride; };
  const auto matrix_of = [&](std::int64_t head) -> const kernels::PackedMatrix& { return heads[static_cast<std::size_t>(head)].matrix; };
  AdaptedRows& adapted = space.adapted;
  if (adapted.any()) {
    adapted.make_room(rows * count);
    adapted.replaced.begin(rows * count);
    for (std::int64_t i = 0; i < rows * count; ++i)
      if (const auto* own = LowRank::replacement(adapted.of_row(i % rows), matrix_of(i / rows)))
        adapted.replaced.add(i, *own, out[i % rows] + i / rows * out_step);
    adapted.replaced.lay_out(table_);
  }
  team_.for_chunks(rows * count, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % rows;
      const std::int64_t head = i / rows;
      const float* x = in[row] + head * in_step;
      table_.prepare_rows(first.type, x, first.inputs, {row, row + 1, rows}, first.inputs, prepared_of(head));
      const AdapterSet* set = adapted.of_row(row);
      if (set == nullptr) continue;
      adapted.replaced.prepare(table_, i, x);
      const LowRank::Row down{x, adapted.down(i)};
      products_.low_rank().down(*set, matrix_of(head).number, {&down, 1});
    }
  });
  for (std::int64_t head = 0; head < count; ++head)
    space.head_products[head] = {
        .product = {&matrix_of(head), Rows{out.data + head * out_step, out.stride}}, .prepared = prepared_of(head), .rows = rows};
  products_.run_prepared({space.head_products, static_cast<std::size_t>(count)});
  if (!adapted.any()) return;
  products_.run_replaced(space);
  team_.for_chunks(rows * count, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t head = i / rows;
      const AdapterSet* set = adapted.of_row(i % rows);
      if (set == nullptr) continue;
      const LowRank::Row up{adapted.down(i), out[i % rows] + head * out_step};
      for (std::int64_t from = 0; from < first.outputs; from += LowRank::kBlock)
        products_.low_rank().up(*set, matrix_of(head).number, {&up, 1}, from, std::min(first.outputs, from + LowRank::kBlock));
    }
  });
}

}  // namespace braid::model
