#include "model/attention.h"

#include "kernels/attention_view.h"
#include "model/deterministic_math.h"
#include "model/norm.h"

#include <algorithm>
#include <array>
#include <span>

namespace braid::model {

using kernels::KvLayer;

namespace {

// Claims that attention wants for each member, so that a slow one does not hold the others up.
constexpr std::int64_t kSharesEach = 4;
constexpr std::int64_t kMostTileRows = 64;  // of attention: more share no more of what a kernel prepares
constexpr std::int64_t kPreparedRows = 40;  // see pieces_of(); by AMX's expansion of keys and values, with head groups of 3 and 8

}  // namespace

void Attention::project(const step::Pass& pass, const LayerShape& shape, const LayerWeights& layer, const KvLayer& pool, std::int32_t group,
                        Workspace& space) const {
  if (shape.attention.latent) return latent_.project(pass, shape, layer, pool, group, space);
  const AttentionWeights& weights = layer.attention;
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const bool apart = stays_apart(shape.attention, weights);
  const auto product = [&](const LinearWeights& linear, const Rows& out) {
    return Product{.weights = &linear.matrix, .out = out, .stays_apart = apart};
  };
  std::array<Product, 4> projections;
  std::size_t count = 0;
  projections[count++] = product(weights.query, space.query);
  if (shape.attention.stores()) projections[count++] = product(weights.key, space.key);
  if (shape.attention.stores() && !shape.attention.keys_are_values) projections[count++] = product(weights.value, space.value);
  if (shape.attention.gate.outputs > 0) projections[count++] = Product{&weights.gate.matrix, space.attention_gate};
  products_.run(std::span(projections).first(count), rows, space, [&](std::int64_t row, float* scratch) -> const float* {
    if (shape.reads_beside) return space.beside[row];
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  });
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const step::PassToken& token = pass.tokens[static_cast<std::size_t>(row)];
      space.attention_rows[row] = {.blocks = pass.table(token, group), .position = token.position};
      rotate_and_store(space.attention_rows[row], row, shape.attention, weights, pool, space);
      const std::int32_t ahead = shape.attention.looks_ahead ? token.ahead : 0;
      space.attention_rows[row].position += ahead;
      space.attention_ahead[row] = ahead;
    }
  });
}

// Biases, norms and rotation of one token's projections; its keys and values, where it has any, go to the pool.
void Attention::rotate_and_store(const kernels::AttentionRow& token, std::int64_t row, const AttentionShape& shape,
                                 const AttentionWeights& weights, const KvLayer& pool, Workspace& space) const {
  const auto finish = [&](float* heads, std::int32_t count, const std::vector<float>& bias) {
    const std::int64_t width = std::int64_t{count} * shape.head_dim;
    if (!bias.empty()) table_.add(heads, bias.data(), width);
    if (shape.clip > 0.0F)
      std::transform(heads, heads + width, heads, [&](float x) { return std::min(std::max(x, -shape.clip), shape.clip); });
  };
  const auto norm_heads = [&](float* heads, std::int32_t count, const NormShape& norm, const NormWeights& own) {
    if (norm.kind == NormShape::Kind::kNone) return;
    const std::int64_t parts = std::int64_t{count} * shape.head_dim / norm.width;
    const NormWeights& of_row = space.adapted.norm(row, own);
    for (std::int64_t i = 0; i < parts; ++i) normalise(table_, norm, of_row, heads + i * norm.width, heads + i * norm.width, i);
  };
  const auto rotate = [&](float* heads, std::int32_t count) {
    if (shape.rotary == kNoRotary) return;
    const RopeParameters& rope = model_.rotary[static_cast<std::size_t>(shape.rotary)];
    const Angles& angles = space.angles[static_cast<std::size_t>(shape.rotary)];
    table_.rope(heads, count, shape.head_dim, rope.rotated, angles.cos_of(row), angles.sin_of(row), rope.interleaved);
  };
  // Of heads that ranks divide, this one stores its own, and where it has no others it sees to these alone.
  const bool apart = stays_apart(shape, weights);
  const std::int32_t queries_each = shape.heads / shape.kv_heads;
  const std::int32_t kv_heads = apart ? share().heads(shape.kv_heads) : shape.kv_heads;
  const std::int64_t own = std::int64_t{share().first_head(shape.kv_heads)} * shape.head_dim;
  float* query = space.query[row] + (apart ? own * queries_each : 0);
  float* key = space.key[row] + (apart ? own : 0);
  float* value = space.value[row] + (apart ? own : 0);
  const auto norm_and_rotate = [&](float* heads, std::int32_t count, const NormShape& norm, const NormWeights& of_norm) {
    if (!shape.norm_after_rotation) norm_heads(heads, count, norm, of_norm);
    rotate(heads, count);
    if (shape.norm_after_rotation) norm_heads(heads, count, norm, of_norm);
  };
  finish(query, kv_heads * queries_each, weights.query.bias);
  norm_and_rotate(query, kv_heads * queries_each, shape.query_norm, weights.query_norm);
  if (shape.growth > 0.0F) {
    const double grown = 1.0 + static_cast<double>(shape.growth) * fixed_log(1.0 + token.position / shape.growth_period);
    std::transform(query, query + std::int64_t{kv_heads} * queries_each * shape.head_dim, query,
                   [&](float x) { return x * static_cast<float>(grown); });
  }
  if (!shape.stores()) return;
  finish(key, kv_heads, weights.key.bias);
  if (shape.keys_are_values) {
    std::copy_n(key, std::int64_t{kv_heads} * shape.head_dim, value);
  } else {
    finish(value, kv_heads, weights.value.bias);
  }
  norm_and_rotate(key, kv_heads, shape.key_norm, weights.key_norm);
  norm_heads(value, kv_heads, shape.value_norm, weights.value_norm);
  const std::int64_t stored = apart ? 0 : own;
  table_.kv_store(pool, token.blocks[token.position / pool.block_tokens], token.position % pool.block_tokens, key + stored, value + stored);
}

// Heads are whole panels, and nothing that is done to one depends on another or on its index.
bool Attention::stays_apart(const AttentionShape& shape, const AttentionWeights& weights) const {
  if (!share().divides(shape.kv_heads) || std::int64_t{share().heads(shape.kv_heads)} * shape.head_dim % kernels::kPanel != 0) return false;
  const auto is_of_one_head = [&](const NormShape& norm) {
    return norm.kind == NormShape::Kind::kNone || (norm.width == shape.head_dim && norm.rows == 1);
  };
  return weights.query.bias.empty() && weights.key.bias.empty() && weights.value.bias.empty() && is_of_one_head(shape.query_norm) &&
         is_of_one_head(shape.key_norm) && is_of_one_head(shape.value_norm);
}

void Attention::attend(std::int64_t rows, const LayerShape& layer_shape, const step::Visibility& visible, const LayerWeights& layer,
                       const KvLayer& pool, Workspace& space) const {
  const AttentionShape& shape = layer_shape.attention;
  const std::int32_t queries_each = shape.heads / shape.kv_heads;
  const std::int32_t heads = share().heads(shape.kv_heads) * queries_each;
  const std::int32_t first = share().first_head(shape.kv_heads) * queries_each;
  const std::int64_t first_value = std::int64_t{first} * shape.head_dim;
  gather({.kv = &pool,
          .rows = space.attention_rows,
          .queries = space.query.data + first_value,
          .out = space.attended.data + first_value,
          .query_stride = space.query.stride,
          .out_stride = space.attended.stride,
          .heads = heads,
          .window = visible.window,
          .sink = visible.sink,
          .scale = shape.scale,
          .score_cap = shape.score_cap,
          .slopes = shape.slopes.empty() ? nullptr : shape.slopes.data() + first,
          .sinks = layer.attention.sinks.empty() ? nullptr : layer.attention.sinks.data() + first},
         rows, space);
  if (share().divides(shape.kv_heads)) products_.ranks()->gather(space.attended, rows, std::int64_t{heads} * shape.head_dim);
  if (shape.latent) latent_.expand(rows, shape, layer.attention.latent, space);
  residual_.add(layer.attention.output, layer_shape.attention_post_norm, layer.attention_post_norm, layer_shape.residual_scale, rows, space,
                [&](std::int64_t row, float* scratch) -> const float* {
                  if (shape.latent) return space.latent_values[row];
                  const float* found = space.attended.fetch(row, shape.query_width());
                  return shape.gate.outputs > 0 ? gated(found, space.attention_gate[row], shape.query_width(), scratch) : found;
                });
}

// found * sigmoid(gate), in `out`.
const float* Attention::gated(const float* found, const float* gate, std::int64_t width, float* out) const {
  table_.exp_sum(gate, width, -1.0F, 0.0F, out);
  std::transform(found, found + width, out, out, [](float x, float power) { return x / (1.0F + power); });
  return out;
}

// Work is claimed by (tile of rows, key/value head), or, when that gives the team too little to share, by (row, chunk of its
// context, key/value head). Both give the same bits.
void Attention::gather(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const {
  const std::int64_t kv_heads = shared.kv->kv_heads;
  if (shared.window > 0 && std::any_of(space.attention_ahead, space.attention_ahead + rows, [](std::int32_t ahead) { return ahead > 0; }))
    return gather_one_by_one(shared, rows, space);
  if (team_.size() > 1 && rows * kv_heads < kSharesEach * team_.size() && split_context(shared, rows, space))
    return gather_in_parts(shared, rows, space);
  const std::int64_t tiles = cut_tiles(rows, kv_heads, space);
  team_.for_chunks(tiles * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    kernels::AttentionArgs args = shared;
    args.scratch = space.scratch_of(member);
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t tile = tiles - 1 - item / kv_heads;  // slices of prompts come last, and take longest
      const auto head = static_cast<std::int32_t>(item % kv_heads);
      table_.attention(args, space.tile_begin[tile], space.tile_begin[tile + 1], head, head + 1);
    }
  });
}

// To the kernels a row that sees further than its own position is at the last one that it sees, and its window as much longer.
void Attention::gather_one_by_one(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const {
  const std::int64_t kv_heads = shared.kv->kv_heads;
  team_.for_chunks(rows * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    kernels::AttentionArgs args = shared;
    args.scratch = space.scratch_of(member);
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = item / kv_heads;
      const auto head = static_cast<std::int32_t>(item % kv_heads);
      args.window = shared.window + space.attention_ahead[row];
      table_.attention(args, row, row + 1, head, head + 1);
    }
  });
}

// How many tiles for `count` rows of one sequence: whoever takes a tile prepares all keys and values that it sees, which takes about as
// long as kPreparedRows rows do, so that more tiles pay only as far as members would have nothing to do.
std::int64_t Attention::pieces_of(std::int64_t count, std::int64_t kv_heads) const {
  const std::int64_t least = (count + kMostTileRows - 1) / kMostTileRows;
  std::int64_t best = least;
  std::int64_t best_time = 0;
  for (std::int64_t pieces = least; pieces <= std::max<std::int64_t>(least, team_.size()); ++pieces) {
    const std::int64_t turns = (pieces * kv_heads + team_.size() - 1) / team_.size();
    const std::int64_t time = turns * (kPreparedRows + (count + pieces - 1) / pieces);
    if (best_time == 0 || time < best_time) {
      best = pieces;
      best_time = time;
    }
  }
  return std::min(best, count);
}

// Rows of one sequence stay together, and beside the rows of others too. Short ones share a tile.
std::int64_t Attention::cut_tiles(std::int64_t rows, std::int64_t kv_heads, Workspace& space) const {
  const std::int64_t joined = std::clamp<std::int64_t>(rows / (kSharesEach * team_.size()), 1, kMostTileRows);
  std::int64_t tiles = 0;
  std::int64_t tile_rows = joined;  // of the last tile, which takes no more when it has so many
  for (std::int64_t begin = 0, end = 0; begin < rows; begin = end) {
    while (end < rows && space.attention_rows[end].blocks == space.attention_rows[begin].blocks) ++end;
    const std::int64_t count = end - begin;
    if (tile_rows + count <= joined) {
      tile_rows += count;
      continue;
    }
    const std::int64_t pieces = pieces_of(count, kv_heads);
    for (std::int64_t i = 0; i < pieces; ++i) space.tile_begin[tiles++] = static_cast<std::int32_t>(begin + count * i / pieces);
    tile_rows = (count + pieces - 1) / pieces;
  }
  space.tile_begin[tiles] = static_cast<std::int32_t>(rows);
  return tiles;
}

bool Attention::split_context(const kernels::AttentionArgs& args, std::int64_t rows, Workspace& space) const {
  std::int32_t count = 0;
  for (std::int32_t row = 0; row < rows; ++row) {
    space.part_begin[row] = count;
    const std::int32_t position = space.attention_rows[row].position;
    for (std::int32_t chunk = kernels::first_chunk(args, position); chunk <= position; chunk = kernels::next_chunk(args, position, chunk)) {
      if (!kernels::sees(kernels::view_of_chunk(args, position, chunk), chunk)) continue;
      if (count == space.shape.parts) return false;
      space.part_list[count++] = {row, chunk};
    }
  }
  space.part_begin[rows] = count;
  return count > rows;
}

void Attention::gather_in_parts(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const {
  const std::int64_t kv_heads = shared.kv->kv_heads;
  const std::int64_t head_floats = shared.heads / kv_heads * kernels::part_floats(shared.kv->head_dim);
  const std::int64_t stride = head_floats * kv_heads;
  const auto args_of = [&](int member) {
    kernels::AttentionArgs args = shared;
    args.scratch = space.scratch_of(member);
    return args;
  };
  team_.for_chunks(space.part_begin[rows] * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t part = item / kv_heads;
      const std::int64_t head = item % kv_heads;
      table_.attention_part(args_of(member), space.part_list[part].row, static_cast<std::int32_t>(head), space.part_list[part].chunk,
                            space.parts + part * stride + head * head_floats);
    }
  });
  team_.for_chunks(rows * kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = item / kv_heads;
      const std::int64_t head = item % kv_heads;
      const std::int64_t first = space.part_begin[row];
      table_.attention_join(args_of(member), row, static_cast<std::int32_t>(head), space.parts + first * stride + head * head_floats,
                            space.part_begin[row + 1] - first, stride);
    }
  });
}

}  // namespace braid::model
