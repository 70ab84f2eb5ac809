#include "model/delta_rule.h"

#include "model/activations.h"
#include "model/causal_convolution.h"
#include "model/gates.h"
#include "model/norm.h"
#include "model/state_runs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace braid::model {
namespace {

constexpr float kLengthEpsilon = 1e-6F;  // added to the square of a length

}  // namespace

void DeltaRule::mix(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
                    Workspace& space) const {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const DeltaRuleShape& own = *shape.delta;
  const DeltaRuleWeights& weights = layer.delta;
  project(rows, shape, layer, space);
  if (space.shape.drafts > 0) {
    const KeptInputs& kept = space.kept[index];
    keep_inputs(pass, space.mixed, kept.mixed, own.convolved());
    keep_inputs(pass, space.betas, kept.betas, own.heads);
    keep_inputs(pass, space.decays, kept.decays, own.heads);
  }
  advance(pass, index, own, weights, pool, space);
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) finish(row, own, weights, space);
  });
}

void DeltaRule::replay(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
                       Workspace& space) const {
  const DeltaRuleShape& own = *shape.delta;
  const KeptInputs& kept = space.kept[index];
  take_inputs(pass, kept.mixed, space.mixed, own.convolved());
  take_inputs(pass, kept.betas, space.betas, own.heads);
  take_inputs(pass, kept.decays, space.decays, own.heads);
  advance(pass, index, own, layer.delta, pool, space);
}

void DeltaRule::advance(const step::Pass& pass, std::size_t index, const DeltaRuleShape& shape, const DeltaRuleWeights& weights,
                        const KvArena& pool, Workspace& space) const {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  convolve_rows(table_, team_, pass, pool, {weights.convolution, index, shape.convolved(), shape.taps, space.mixed, 0, space.convolved});
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) scale(row, shape, weights, space);
  });
  team_.for_chunks(static_cast<std::int64_t>(pass.sequences.size()) * shape.heads, 1, [&](std::int64_t from, std::int64_t to, int member) {
    for (std::int64_t item = from; item < to; ++item) {
      const step::PassSequence& sequence = pass.sequences[static_cast<std::size_t>(item / shape.heads)];
      auto* const ahead = reinterpret_cast<float*>(space.scratch_of(member));
      advance_head(pass, sequence, index, static_cast<std::int32_t>(item % shape.heads), shape, weights, pool, space, ahead);
    }
  });
}

void DeltaRule::project(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  const DeltaRuleWeights& weights = layer.delta;
  const std::array products{Product{&weights.input.matrix, space.mixed}, Product{&weights.gate.matrix, space.state_gate},
                            Product{&weights.beta.matrix, space.betas}, Product{&weights.decay.matrix, space.decays}};
  products_.run(products, rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  });
}

void DeltaRule::scale(std::int64_t row, const DeltaRuleShape& shape, const DeltaRuleWeights& weights, Workspace& space) const {
  float* heads = space.convolved[row];
  const std::int64_t dim = shape.key_dim;
  const float epsilon = kLengthEpsilon / static_cast<float>(dim);
  const bool sound = in_range(heads, 2 * shape.key_heads * dim);
  for (std::int64_t i = 0; i < 2 * shape.key_heads; ++i) {
    const std::vector<float>& length = i < shape.key_heads ? weights.query_length : weights.key_length;
    table_.rms_norm(heads + i * dim, length.data(), dim, epsilon, heads + i * dim);
  }
  if (!sound) std::fill_n(heads, 2 * shape.key_heads * dim, std::numeric_limits<float>::quiet_NaN());
}

void DeltaRule::advance_head(const step::Pass& pass, const step::PassSequence& sequence, std::size_t index, std::int32_t head,
                             const DeltaRuleShape& shape, const DeltaRuleWeights& weights, const KvArena& pool, Workspace& space,
                             float* ahead) const {
  const auto place = [&](std::uint32_t blocks) { return pool.state(pass.blocks.data() + blocks, index, shape.taps - 1 + head); };
  const std::int64_t values = std::int64_t{shape.key_dim} * shape.value_dim;
  const std::int64_t key_head = shape.tiled ? head % shape.key_heads : head / (shape.heads / shape.key_heads);
  const auto own = static_cast<std::size_t>(head);
  float* h = place(sequence.state);
  if (sequence.is_first) std::fill_n(h, values, 0.0F);
  const auto run = [&](std::int32_t first, std::int32_t count) {
    std::array<float, kMostRun> betas;
    std::array<float, kMostRun> decays;
    std::array<float, kMostRun> products;
    const std::int64_t row = sequence.first + first;
    const float* query = space.convolved[row] + key_head * shape.key_dim;
    const float* key = query + std::int64_t{shape.key_heads} * shape.key_dim;
    for (std::int32_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t behind = i * space.convolved.stride;
      betas[at] = sigmoid(space.betas[row + i][head]);
      decays[at] = decay_of(weights.rate[own] * softplus(space.decays[row + i][head] + weights.step_bias[own]));
      products[at] = std::inner_product(query + behind, query + behind + shape.key_dim, key + behind, 0.0F);
    }
    table_.delta_rule({.state = h,
                       .rows = shape.key_dim,
                       .columns = shape.value_dim,
                       .tokens = count,
                       .query = query,
                       .key = key,
                       .value = space.convolved[row] + 2 * std::int64_t{shape.key_heads} * shape.key_dim + head * shape.value_dim,
                       .stride = space.convolved.stride,
                       .decay = decays.data(),
                       .beta = betas.data(),
                       .query_key = products.data(),
                       .out = space.attended[row] + head * shape.value_dim,
                       .out_stride = space.attended.stride});
  };
  for_state_runs(pass, sequence, run, [&](std::uint32_t blocks) { std::copy_n(h, values, place(blocks)); });
  if (sequence.drafted == 0) return;
  h = std::copy_n(h, values, ahead) - values;
  for_drafted_runs(sequence, run);
}

void DeltaRule::finish(std::int64_t row, const DeltaRuleShape& shape, const DeltaRuleWeights& weights, Workspace& space) const {
  float* y = space.attended[row];
  const bool sound = in_range(y, shape.inner());
  const NormWeights& norm = space.adapted.norm(row, weights.norm);
  for (std::int32_t head = 0; head < shape.heads; ++head) {
    float* own = y + std::int64_t{head} * shape.value_dim;
    normalise(table_, shape.norm, norm, own, own);
  }
  table_.swiglu(space.state_gate[row], y, shape.inner(), y);
  if (!sound) std::fill_n(y, shape.inner(), std::numeric_limits<float>::quiet_NaN());
}

void DeltaRule::add(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  residual_.add(layer.delta.output, shape.attention_post_norm, layer.attention_post_norm, shape.residual_scale, rows, space,
                [&](std::int64_t row, float*) { return space.attended.fetch(row, shape.delta->inner()); });
}

}  // namespace braid::model
