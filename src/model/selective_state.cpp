#include "model/selective_state.h"

#include "model/causal_convolution.h"
#include "model/gates.h"
#include "model/norm.h"
#include "model/state_runs.h"

#include <algorithm>
#include <array>
#include <limits>

namespace braid::model {
void SelectiveState::mix(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
                         Workspace& space) const {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const SelectiveStateShape& own = *shape.selective;
  const std::array inputs{Product{&layer.selective.input.matrix, space.mixed}};
  products_.run(inputs, rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  });
  products_.add_bias(layer.selective.input, space.mixed, rows);
  if (space.shape.drafts > 0) keep_inputs(pass, space.mixed, space.kept[index].mixed, own.input.outputs);
  scan(pass, index, own, layer.selective, pool, space);
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* y = space.attended[row];
      table_.swiglu(space.mixed[row], y, own.inner(), y);
      const bool sound = in_range(y, own.inner());
      const NormWeights& norm = space.adapted.norm(row, layer.selective.norm);
      if (own.norm.kind != NormShape::Kind::kNone)
        for (std::int64_t part = 0; part < own.norm.rows; ++part)
          normalise(table_, own.norm, norm, y + part * own.norm.width, y + part * own.norm.width, part);
      if (!sound) std::fill_n(y, own.inner(), std::numeric_limits<float>::quiet_NaN());
    }
  });
}

void SelectiveState::replay(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer,
                            const KvArena& pool, Workspace& space) const {
  take_inputs(pass, space.kept[index].mixed, space.mixed, shape.selective->input.outputs);
  scan(pass, index, *shape.selective, layer.selective, pool, space);
}

void SelectiveState::scan(const step::Pass& pass, std::size_t index, const SelectiveStateShape& shape, const SelectiveStateWeights& weights,
                          const KvArena& pool, Workspace& space) const {
  convolve_rows(table_, team_, pass, pool,
                {weights.convolution, index, shape.convolved(), shape.taps, space.mixed, shape.inner(), space.convolved});
  team_.for_chunks(static_cast<std::int64_t>(pass.sequences.size()) * shape.heads, 1, [&](std::int64_t from, std::int64_t to, int member) {
    for (std::int64_t item = from; item < to; ++item) {
      const step::PassSequence& sequence = pass.sequences[static_cast<std::size_t>(item / shape.heads)];
      auto* const ahead = reinterpret_cast<float*>(space.scratch_of(member));
      scan_head(pass, sequence, index, static_cast<std::int32_t>(item % shape.heads), shape, weights, pool, space, ahead);
    }
  });
}

void SelectiveState::scan_head(const step::Pass& pass, const step::PassSequence& sequence, std::size_t index, std::int32_t head,
                               const SelectiveStateShape& shape, const SelectiveStateWeights& weights, const KvArena& pool,
                               Workspace& space, float* ahead) const {
  const auto place = [&](std::uint32_t blocks) { return pool.state(pass.blocks.data() + blocks, index, shape.taps - 1 + head); };
  const std::int64_t dim = shape.head_dim;
  const std::int64_t values = dim * shape.state;
  const std::int64_t group = head / (shape.heads / shape.groups);
  float* h = place(sequence.state);
  if (sequence.is_first) std::fill_n(h, values, 0.0F);
  const auto run = [&](std::int32_t first, std::int32_t count) {
    std::array<float, kMostRun> steps;
    std::array<float, kMostRun> decays;
    const std::int64_t row = sequence.first + first;
    for (std::int32_t i = 0; i < count; ++i) {
      const float raw = space.mixed[row + i][shape.inner() + shape.convolved() + head];
      const auto at = static_cast<std::size_t>(i);
      steps[at] = softplus(raw + weights.step_bias[static_cast<std::size_t>(head)]);
      decays[at] = decay_of(steps[at] * weights.decay[static_cast<std::size_t>(head)]);
    }
    const float* x = space.convolved[row];
    table_.selective_scan({.state = h,
                           .rows = shape.state,
                           .columns = dim,
                           .tokens = count,
                           .x = x + head * dim,
                           .b = x + shape.inner() + group * shape.state,
                           .c = x + shape.inner() + (shape.groups + group) * shape.state,
                           .stride = space.convolved.stride,
                           .decay = decays.data(),
                           .step = steps.data(),
                           .skip = weights.skip[static_cast<std::size_t>(head)],
                           .out = space.attended[row] + head * dim,
                           .out_stride = space.attended.stride});
  };
  for_state_runs(pass, sequence, run, [&](std::uint32_t blocks) { std::copy_n(h, values, place(blocks)); });
  if (sequence.drafted == 0) return;
  h = std::copy_n(h, values, ahead) - values;
  for_drafted_runs(sequence, run);
}

void SelectiveState::add(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  residual_.add(layer.selective.output, shape.attention_post_norm, layer.attention_post_norm, shape.residual_scale, rows, space,
                [&](std::int64_t row, float*) { return space.attended.fetch(row, shape.selective->inner()); });
}

}  // namespace braid::model
