#include "model/transformer.h"

#include "kernels/attention_view.h"
#include "kernels/cache_hints.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace braid::model {

using kernels::KvLayer;
using kernels::PackedMatrix;

// One matrix product of the rows at hand.
struct Transformer::Product {
  const PackedMatrix* weights = nullptr;
  Rows out;  // [rows, weights->outputs]
  bool accumulate = false;
  const PackedMatrix* up = nullptr;  // MatmulArgs
};

// The panels of several products as one range, of which a member of the team claims: those of one product at a time.
class Transformer::ClaimedPanels {
 public:
  ClaimedPanels(std::span<const Product> products, kernels::ThreadTeam::Claims& claims) : products_(products), claims_(claims) {}

  // The next product that has some; null: there are no more.
  const Product* next_product() {
    if (!has_panels()) return nullptr;
    offset_ = 0;
    for (const Product& product : products_) {
      end_ = offset_ + product.weights->panels();
      if (begin_ < end_) return &product;
      offset_ = end_;
    }
    return nullptr;
  }

  // Those of that product, as long as claims stay with it.
  kernels::PanelSource source() {
    return {[](void* context, kernels::PanelRange& range) { return static_cast<ClaimedPanels*>(context)->next(range); }, this};
  }

 private:
  bool has_panels() { return begin_ < claimed_ || claims_.next(begin_, claimed_); }

  bool next(kernels::PanelRange& range) {
    if (!has_panels() || begin_ < offset_ || begin_ >= end_) return false;
    const std::int64_t end = std::min(claimed_, end_);
    range = {begin_ - offset_, end - offset_};
    begin_ = end;
    return true;
  }

  const std::span<const Product> products_;
  kernels::ThreadTeam::Claims& claims_;
  std::int64_t begin_ = 0;  // claimed and not handed out yet
  std::int64_t claimed_ = 0;
  std::int64_t offset_ = 0;  // of the product's panels in the range
  std::int64_t end_ = 0;
};

namespace {

// Rows that one claim of row-wise work covers: a single row never wakes the team.
constexpr std::int64_t kRowChunk = 4;

// Row `row` of `width` floats each. The one after it is fetched, since another member has written half of it.
const float* row_of(const Rows& rows, std::int64_t row, std::int64_t width) {
  const float* const x = rows[row];
  kernels::prefetch_lines<kernels::kSecondLevel>(reinterpret_cast<const std::byte*>(rows[row + 1]), width / 16);
  return x;
}

// Whether the squares of `x` have a finite sum, whatever the others are: else its norm is zeros.
bool in_range(const float* x, std::int64_t count) {
  constexpr float kTooLarge = 0x1p55F;
  std::uint32_t largest = 0;  // magnitude, in bits: infinities and NaNs come last
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU);
  return largest < std::bit_cast<std::uint32_t>(kTooLarge);
}

// Claims of a product that each member makes, so that a slow one does not hold the others up. Each reads all prepared rows, so there are few
// where these do not stay in a second-level cache.
constexpr std::int64_t kClaimsEach = 8;
constexpr std::int64_t kUncachedClaimsEach = 2;
constexpr std::size_t kCachedRowBytes = 1280 << 10;

// Claims that attention wants for each member, so that a slow one does not hold the others up.
constexpr std::int64_t kSharesEach = 4;
constexpr std::int64_t kMostTileRows = 64;  // of attention: more share no more of what a kernel prepares
constexpr std::int64_t kPreparedRows = 40;  // see pieces_of(); by AMX's expansion of keys and values, with head groups of 3 and 8

}  // namespace

Transformer::Transformer(const HyperParameters& model, const Weights& weights, const RopeTable& rope, const kernels::KernelTable& table,
                         kernels::ThreadTeam& team)
    : model_(model), weights_(weights), rope_(rope), table_(table), team_(team) {}

void Transformer::forward(std::span<const BatchToken> tokens, std::span<const std::int32_t> picked, const KvArena& kv,
                          Workspace& space) const {
  embed(tokens, space);
  auto rows = static_cast<std::int64_t>(tokens.size());
  for (std::int32_t i = 0; i < model_.layers; ++i) {
    project(tokens, i, kv, space);
    if (i + 1 == model_.layers) rows = keep_rows(picked, space);
    if (rows == 0) return;
    attention_block(rows, i, kv, space);
    feed_forward_block(rows, weights_.layers[static_cast<std::size_t>(i)], space);
  }
}

void Transformer::logits(std::int64_t begin, std::int64_t count, Workspace& space) const {
  const Product product{&weights_.output, space.logits};
  multiply({&product, 1}, count, space, [&](std::int64_t row, float* scratch) {
    const float* x = space.residual[begin + row];
    table_.rms_norm(x, weights_.output_norm.data(), model_.embedding, model_.norm_epsilon, scratch);
    return scratch;
  });
  // Of a row that has overflowed norms make zeros, from which any token would be drawn.
  for (std::int64_t row = 0; row < count; ++row)
    if (!in_range(space.residual[begin + row], model_.embedding))
      std::fill_n(space.logits[row], model_.vocab, std::numeric_limits<float>::quiet_NaN());
}

// After the last layer's keys and values only the rows picked matter: they move to the front.
std::int64_t Transformer::keep_rows(std::span<const std::int32_t> picked, Workspace& space) const {
  std::int64_t to = 0;
  for (const std::int32_t from : picked) {
    std::copy_n(space.residual[from], model_.embedding, space.residual[to]);
    std::copy_n(space.query[from], model_.query_width(), space.query[to]);
    space.attention_rows[to++] = space.attention_rows[from];
  }
  return to;
}

void Transformer::embed(std::span<const BatchToken> tokens, Workspace& space) const {
  const std::int64_t pairs = rope_.pairs();
  team_.for_chunks(static_cast<std::int64_t>(tokens.size()), kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const BatchToken& token = tokens[static_cast<std::size_t>(row)];
      table_.unpack_row(weights_.embedding, token.token, space.residual[row]);
      rope_.fill(token.position, space.cos + row * pairs, space.sin + row * pairs);
      space.attention_rows[row] = {.blocks = token.blocks, .position = token.position};
    }
  });
}

// Queries of all tokens; their keys and values go to the pool.
void Transformer::project(std::span<const BatchToken> tokens, std::int32_t index, const KvArena& kv, Workspace& space) const {
  const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
  const KvLayer pool = kv.layer(index);
  const auto rows = static_cast<std::int64_t>(tokens.size());

  const std::array projections{Product{&layer.query, space.query}, Product{&layer.key, space.key}, Product{&layer.value, space.value}};
  multiply(projections, rows, space, [&](std::int64_t row, float* scratch) {
    const float* x = row_of(space.residual, row, model_.embedding);
    table_.rms_norm(x, layer.attention_norm.data(), model_.embedding, model_.norm_epsilon, scratch);
    return scratch;
  });
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) rotate_and_store(tokens[static_cast<std::size_t>(row)], row, layer, pool, space);
  });
}

void Transformer::attention_block(std::int64_t rows, std::int32_t index, const KvArena& kv, Workspace& space) const {
  const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
  attend(rows, index, kv.layer(index), space);
  const Product output{&layer.attention_output, space.residual, true};
  multiply({&output, 1}, rows, space, [&](std::int64_t row, float*) { return row_of(space.attended, row, model_.query_width()); });
  if (!layer.attention_output_bias.empty())
    for (std::int64_t row = 0; row < rows; ++row) table_.add(space.residual[row], layer.attention_output_bias.data(), model_.embedding);
}

// Biases, head norms and rotation of one token's projections; its keys and values go to the pool.
void Transformer::rotate_and_store(const BatchToken& token, std::int64_t row, const LayerWeights& layer, const KvLayer& pool,
                                   Workspace& space) const {
  const auto finish = [&](float* heads, std::int32_t count, const std::vector<float>& bias, const std::vector<float>& norm) {
    if (!bias.empty()) table_.add(heads, bias.data(), std::int64_t{count} * model_.head_dim);
    for (std::int32_t h = 0; h < count && !norm.empty(); ++h) {
      float* head = heads + std::int64_t{h} * model_.head_dim;
      table_.rms_norm(head, norm.data(), model_.head_dim, model_.norm_epsilon, head);
    }
  };
  const auto rotate = [&](float* heads, std::int32_t count) {
    const std::int64_t pairs = rope_.pairs();
    table_.rope(heads, count, model_.head_dim, model_.rope.rotated, space.cos + row * pairs, space.sin + row * pairs,
                model_.family->interleaved_rope);
  };
  float* query = space.query[row];
  float* key = space.key[row];
  float* value = space.value[row];
  finish(query, model_.heads, layer.query_bias, layer.query_norm);
  finish(key, model_.kv_heads, layer.key_bias, layer.key_norm);
  finish(value, model_.kv_heads, layer.value_bias, {});
  rotate(query, model_.heads);
  rotate(key, model_.kv_heads);
  table_.kv_store(pool, token.blocks[token.position / pool.block_tokens], token.position % pool.block_tokens, key, value);
}

// Work is claimed by (tile of rows, key/value head), or, when that gives the team too little to share, by (row, chunk of its
// context, key/value head). Both give the same bits.
void Transformer::attend(std::int64_t rows, std::int32_t layer, const KvLayer& pool, Workspace& space) const {
  const step::Visibility visible = model_.layer_visibility(layer);
  const kernels::AttentionArgs shared{.kv = &pool,
                                      .rows = space.attention_rows,
                                      .queries = space.query.data,
                                      .out = space.attended.data,
                                      .query_stride = space.query.stride,
                                      .out_stride = space.attended.stride,
                                      .heads = model_.heads,
                                      .window = visible.window,
                                      .sink = visible.sink,
                                      .scale = 1.0F / std::sqrt(static_cast<float>(model_.head_dim)),
                                      .score_cap = model_.score_cap};
  if (team_.size() > 1 && rows * model_.kv_heads < kSharesEach * team_.size() && split_context(shared, rows, space))
    return attend_in_parts(shared, rows, space);
  const std::int64_t tiles = cut_tiles(rows, space);
  team_.for_chunks(tiles * model_.kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    kernels::AttentionArgs args = shared;
    args.scratch = space.scratch + static_cast<std::size_t>(member) * space.scratch_stride;
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t tile = tiles - 1 - item / model_.kv_heads;  // slices of prompts come last, and take longest
      const auto head = static_cast<std::int32_t>(item % model_.kv_heads);
      table_.attention(args, space.tile_begin[tile], space.tile_begin[tile + 1], head, head + 1);
    }
  });
}

// How many tiles for `count` rows of one sequence: whoever takes a tile prepares all keys and values that it sees, which takes about as
// long as kPreparedRows rows do, so that more tiles pay only as far as members would have nothing to do.
std::int64_t Transformer::pieces_of(std::int64_t count) const {
  const std::int64_t least = (count + kMostTileRows - 1) / kMostTileRows;
  std::int64_t best = least;
  std::int64_t best_time = 0;
  for (std::int64_t pieces = least; pieces <= std::max<std::int64_t>(least, team_.size()); ++pieces) {
    const std::int64_t turns = (pieces * model_.kv_heads + team_.size() - 1) / team_.size();
    const std::int64_t time = turns * (kPreparedRows + (count + pieces - 1) / pieces);
    if (best_time == 0 || time < best_time) {
      best = pieces;
      best_time = time;
    }
  }
  return std::min(best, count);
}

// Rows of one sequence stay together, and beside the rows of others too. Short ones share a tile.
std::int64_t Transformer::cut_tiles(std::int64_t rows, Workspace& space) const {
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
    const std::int64_t pieces = pieces_of(count);
    for (std::int64_t i = 0; i < pieces; ++i) space.tile_begin[tiles++] = static_cast<std::int32_t>(begin + count * i / pieces);
    tile_rows = (count + pieces - 1) / pieces;
  }
  space.tile_begin[tiles] = static_cast<std::int32_t>(rows);
  return tiles;
}

bool Transformer::split_context(const kernels::AttentionArgs& args, std::int64_t rows, Workspace& space) const {
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

void Transformer::attend_in_parts(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const {
  const std::int64_t head_floats = std::int64_t{model_.heads / model_.kv_heads} * kernels::part_floats(model_.head_dim);
  const std::int64_t stride = head_floats * model_.kv_heads;
  const auto args_of = [&](int member) {
    kernels::AttentionArgs args = shared;
    args.scratch = space.scratch + static_cast<std::size_t>(member) * space.scratch_stride;
    return args;
  };
  team_.for_chunks(std::int64_t{space.part_begin[rows]} * model_.kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t part = item / model_.kv_heads;
      const std::int64_t head = item % model_.kv_heads;
      table_.attention_part(args_of(member), space.part_list[part].row, static_cast<std::int32_t>(head), space.part_list[part].chunk,
                            space.parts + part * stride + head * head_floats);
    }
  });
  team_.for_chunks(rows * model_.kv_heads, 1, [&](std::int64_t begin, std::int64_t end, int member) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t row = item / model_.kv_heads;
      const std::int64_t head = item % model_.kv_heads;
      const std::int64_t first = space.part_begin[row];
      table_.attention_join(args_of(member), row, static_cast<std::int32_t>(head), space.parts + first * stride + head * head_floats,
                            space.part_begin[row + 1] - first, stride);
    }
  });
}

void Transformer::feed_forward_block(std::int64_t rows, const LayerWeights& layer, Workspace& space) const {
  const bool fused = layer.gate.type == layer.up.type && table_.fuses_swiglu != nullptr && table_.fuses_swiglu(layer.gate.type, rows);
  const std::array projections{Product{&layer.gate, space.gate, false, fused ? &layer.up : nullptr}, Product{&layer.up, space.up}};
  multiply(std::span(projections).first(fused ? 1 : 2), rows, space, [&](std::int64_t row, float* scratch) {
    const float* x = row_of(space.residual, row, model_.embedding);
    table_.rms_norm(x, layer.feed_forward_norm.data(), model_.embedding, model_.norm_epsilon, scratch);
    return scratch;
  });
  const Product down{&layer.down, space.residual, true};
  multiply({&down, 1}, rows, space, [&](std::int64_t row, float* scratch) -> const float* {
    if (fused) return row_of(space.gate, row, model_.feed_forward);
    table_.swiglu(space.gate[row], space.up[row], model_.feed_forward, scratch);
    return scratch;
  });
}

template <class Input>
void Transformer::multiply(std::span<const Product> products, std::int64_t rows, Workspace& space, Input&& input) const {
  // Neighbours of one weight type share the prepared rows; another type (as in mixed quantisations) prepares them again.
  while (!products.empty()) {
    const PackedMatrix& first = *products.front().weights;
    const auto same = std::ranges::find_if(products, [&](const Product& product) { return product.weights->type != first.type; });
    const auto count = static_cast<std::size_t>(same - products.begin());
    team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
      auto* scratch = reinterpret_cast<float*>(space.scratch + static_cast<std::size_t>(member) * space.scratch_stride);
      for (std::int64_t row = begin; row < end; ++row)
        table_.prepare_rows(first.type, input(row, scratch), first.inputs, {row, row + 1, rows}, first.inputs, space.prepared);
    });
    multiply_prepared(products.first(count), rows, space);
    products = products.subspan(count);
  }
}

// The panels of all products form one range, from which the team claims.
void Transformer::multiply_prepared(std::span<const Product> products, std::int64_t rows, Workspace& space) const {
  std::int64_t panels = 0;
  for (const Product& product : products) panels += product.weights->panels();
  const PackedMatrix& first = *products.front().weights;
  const bool cached = table_.prepared_bytes(first.type, first.inputs, rows) <= kCachedRowBytes;
  const std::int64_t parts = (cached ? kClaimsEach : kUncachedClaimsEach) * team_.size();
  const std::int64_t chunk = std::max<std::int64_t>(2, panels / parts / 2 * 2);
  team_.for_claims(panels, chunk, [&](kernels::ThreadTeam::Claims& claims, int) {
    ClaimedPanels claimed(products, claims);
    while (const Product* product = claimed.next_product()) {
      const std::int64_t outputs = product->weights->outputs;
      const kernels::MatmulArgs args{.weights = product->weights,
                                     .prepared = space.prepared,
                                     .rows = rows,
                                     .out = product->out.data,
                                     .out_stride = product->out.stride,
                                     .accumulate = product->accumulate,
                                     .past_caches = rows * outputs * std::int64_t{sizeof(float)} >= table_.large_results,
                                     .side_by_side = table_.side_by_side,
                                     .up = product->up};
      table_.matmul(args, claimed.source());
    }
  });
}

}  // namespace braid::model
