#include "model/transformer.h"

#include "model/norm.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace braid::model {
Transformer::Transformer(const ModelShape& model, const Weights& weights, std::span<const RopeTable> ropes,
                         const kernels::KernelTable& table, kernels::ThreadTeam& team, const AdapterTable* adapters, RankGather* ranks)
    : model_(model), weights_(weights), ropes_(ropes), table_(table), team_(team), adapters_(adapters), products_(table, team, ranks),
      residual_(table, team, products_), attention_(model, table, team, products_, residual_),
      convolution_(table, team, products_, residual_), selective_(table, team, products_, residual_),
      delta_(table, team, products_, residual_), feed_forward_(table, team, products_, residual_),
      learned_residual_(table, team, products_, residual_), layer_inputs_(model, weights, table, team, products_, residual_),
      streams_(model, weights, table, team, products_) {}

Transformer::PassState Transformer::begin(const step::Pass& pass, Workspace& space) const {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  space.adapted.begin(pass, adapters_);
  embed(pass, space);
  if (!stage().is_first()) products_.ranks()->take(space.residual, rows, model_.embedding);
  if (model_.layer_inputs) layer_inputs_.begin(pass, space);
  if (model_.streams) streams_.begin(rows, space);
  return {.layer = stage().begin(model_.layers.size()), .rows = rows};
}

bool Transformer::advance(const step::Pass& pass, const KvArena& kv, Workspace& space, PassState& state) const {
  const std::size_t i = state.layer++;
  const LayerShape& shape = model_.layers[i];
  const LayerWeights& layer = weights_.layers[i];
  const auto index = static_cast<std::int32_t>(i);
  const bool is_last = state.layer == model_.layers.size();
  if (shape.mix) streams_.predict(state.rows, i, space);
  if (shape.convolution) {
    convolution_.mix(pass, i, shape, layer, kv, space);
  } else if (shape.selective) {
    selective_.mix(pass, i, shape, layer, kv, space);
  } else if (shape.delta) {
    delta_.mix(pass, i, shape, layer, kv, space);
  }
  if (shape.attends()) attention_.project(pass, shape, layer, kv.layer(index), kv.group_of(index), space);
  if (is_last) state.rows = keep_rows(pass.picked, i, space);
  if (state.rows == 0) return false;
  // What a parallel layer's attention adds is not to be seen by its feed-forward branch, which goes first: queries are computed.
  if (shape.parallel) feed_forward_.run(state.rows, shape, layer, space);
  if (shape.convolution) {
    convolution_.add(state.rows, shape, layer, space);
  } else if (shape.selective) {
    selective_.add(state.rows, shape, layer, space);
  } else if (shape.delta) {
    delta_.add(state.rows, shape, layer, space);
  }
  if (shape.learned_residual) learned_residual_.compute(state.rows, shape, layer, space);
  if (shape.attends()) attention_.attend(state.rows, shape, model_.layer_visibility(i), layer, kv.layer(index), space);
  if (shape.learned_residual) learned_residual_.join(state.rows, space);
  if (!shape.parallel && shape.feeds()) feed_forward_.run(state.rows, shape, layer, space);
  finish_layer(state.rows, i, space);
  if (is_last && model_.streams) streams_.end(state.rows, space);
  if (!is_last && std::cmp_less(state.layer, pass.given_parts)) add_given(pass, index + 1, space);
  if (is_last || state.layer < stage().end(model_.layers.size())) return !is_last;
  products_.ranks()->pass_on(space.residual, state.rows, model_.embedding);
  return false;
}

void Transformer::finish_layer(std::int64_t rows, std::size_t index, Workspace& space) const {
  const LayerShape& shape = model_.layers[index];
  const LayerWeights& layer = weights_.layers[index];
  if (shape.mix) streams_.correct(rows, index, space);
  if (shape.input && shape.mix) {
    layer_inputs_.compute(rows, index, layer.mix.scale, space);
    streams_.add_branch(rows, space);
  } else if (shape.input) {
    layer_inputs_.add(rows, index, space);
  }
  if (layer.output_scale.empty()) return;
  const float scale = layer.output_scale.front();
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row)
      std::transform(space.residual[row], space.residual[row] + model_.embedding, space.residual[row],
                     [scale](float x) { return x * scale; });
  });
}

void Transformer::replay(const step::Pass& pass, const KvArena& kv, Workspace& space) const {
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    const LayerShape& shape = model_.layers[i];
    const LayerWeights& layer = weights_.layers[i];
    if (shape.convolution) {
      convolution_.replay(pass, i, shape, layer, kv, space);
    } else if (shape.selective) {
      selective_.replay(pass, i, shape, layer, kv, space);
    } else if (shape.delta) {
      delta_.replay(pass, i, shape, layer, kv, space);
    }
  }
}

const float* Transformer::given_of(const step::Pass& pass, const step::PassToken& token, std::int32_t part) const {
  return pass.given.data() + (std::int64_t{token.given} * pass.given_parts + part) * model_.embedding;
}

// What is added behind a layer to the tokens whose vectors are given.
void Transformer::add_given(const step::Pass& pass, std::int32_t part, Workspace& space) const {
  team_.for_chunks(static_cast<std::int64_t>(pass.tokens.size()), kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      const step::PassToken& token = pass.tokens[static_cast<std::size_t>(row)];
      if (token.given != step::PassToken::kEmbedded) table_.add(space.residual[row], given_of(pass, token, part), model_.embedding);
    }
  });
}

void Transformer::logits(std::int64_t begin, std::int64_t count, Workspace& space) const {
  const Product product{&weights_.output, space.logits};
  products_.run(
      {&product, 1}, count, space,
      [&](std::int64_t row, float* scratch) {
    return residual_.read(begin + row, model_.output.norm, weights_.output_norm, space, scratch);
      },
      begin);
  finish_logits(count, space);
  for (std::int64_t row = 0; row < count; ++row)
    if (!in_range(space.residual[begin + row], model_.embedding))
      std::fill_n(space.logits[row], model_.vocab, std::numeric_limits<float>::quiet_NaN());
}

// Bias, scale and cap.
void Transformer::finish_logits(std::int64_t count, Workspace& space) const {
  const OutputShape& output = model_.output;
  if (weights_.output_bias.empty() && output.scale == 1.0F && output.cap == 0.0F) return;
  team_.for_chunks(count, 1, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t row = from; row < to; ++row) {
      float* logits = space.logits[row];
      if (!weights_.output_bias.empty()) table_.add(logits, weights_.output_bias.data(), model_.vocab);
      if (output.scale != 1.0F) std::transform(logits, logits + model_.vocab, logits, [&](float x) { return x * output.scale; });
      if (output.cap != 0.0F) table_.soft_cap(logits, model_.vocab, output.cap);
    }
  });
}

void Transformer::hidden(std::int64_t picked, const Workspace& space, float* out) const {
  residual_.read(picked, model_.output.norm, weights_.output_norm, space, out);
  if (!in_range(space.residual[picked], model_.embedding)) std::fill_n(out, model_.embedding, std::numeric_limits<float>::quiet_NaN());
}

// After the last layer's keys and values, or states, only the rows picked matter: they move to the front.
std::int64_t Transformer::keep_rows(std::span<const std::int32_t> picked, std::size_t index, Workspace& space) const {
  const LayerShape& shape = model_.layers[index];
  const std::int64_t input = shape.input ? model_.layer_inputs->width : 0;
  const std::int64_t first_input = static_cast<std::int64_t>(index) * input;
  space.adapted.keep(picked);
  std::int64_t to = 0;
  for (const std::int32_t from : picked) {
    std::copy_n(space.residual[from], model_.embedding, space.residual[to]);
    if (model_.streams) std::copy_n(space.streams[from], std::int64_t{model_.streams->count} * model_.embedding, space.streams[to]);
    if (input > 0) std::copy_n(space.layer_inputs[from] + first_input, input, space.layer_inputs[to] + first_input);
    if (shape.carries_state()) std::copy_n(space.attended[from], shape.mixed_width(), space.attended[to]);
    if (shape.attends()) {
      std::copy_n(space.query[from], shape.attention.query_width(), space.query[to]);
      if (shape.attention.gate.outputs > 0) std::copy_n(space.attention_gate[from], shape.attention.gate.outputs, space.attention_gate[to]);
      space.attention_rows[to] = space.attention_rows[from];
      space.attention_ahead[to] = space.attention_ahead[from];
    }
    ++to;
  }
  return to;
}

// What the first stage begins with, and the angles, which all stages need.
void Transformer::embed(const step::Pass& pass, Workspace& space) const {
  const bool is_first = stage().is_first();
  team_.for_chunks(static_cast<std::int64_t>(pass.tokens.size()), kRowChunk, [&](std::int64_t begin, std::int64_t end, int member) {
    auto* scratch = reinterpret_cast<float*>(space.scratch_of(member));
    for (std::int64_t row = begin; row < end; ++row) {
      const step::PassToken& token = pass.tokens[static_cast<std::size_t>(row)];
      if (is_first) embed(pass, row, scratch, space);
      const std::size_t rotary = model_.rotary.size();
      const std::size_t first_rope = token.stretched && ropes_.size() > rotary ? rotary : 0;
      for (std::size_t i = 0; i < rotary; ++i)
        ropes_[first_rope + i].fill(token.position + token.shift, token.down, token.across, space.angles[i].cos_of(row),
                                    space.angles[i].sin_of(row));
    }
  });
}

void Transformer::embed(const step::Pass& pass, std::int64_t row, float* scratch, Workspace& space) const {
  const step::PassToken& token = pass.tokens[static_cast<std::size_t>(row)];
  float* const out = space.residual[row];
  if (token.given != step::PassToken::kEmbedded) {
    std::copy_n(given_of(pass, token, 0), model_.embedding, out);
  } else {
    table_.unpack_row(weights_.embedding, token.token, out);
    if (const AdapterSet* set = space.adapted.of_row(row)) products_.low_rank().embed(*set, weights_.embedding, token.token, out);
    if (model_.input.scale != 1.0F) std::transform(out, out + model_.embedding, out, [&](float x) { return x * model_.input.scale; });
  }
  if (!model_.input.positions.empty()) {
    table_.unpack_row(weights_.positions, token.position, scratch);
    table_.add(out, scratch, model_.embedding);
  }
  if (model_.input.norm.kind != NormShape::Kind::kNone)
    normalise(table_, model_.input.norm, space.adapted.norm(row, weights_.embedding_norm), out, out);
}

}  // namespace braid::model
