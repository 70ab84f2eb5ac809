#include "model/selective_state.h"

#include "model/causal_convolution.h"
#include "model/deterministic_math.h"
#include "model/norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace braid::model {
namespace {

constexpr std::int64_t kScanChannels = 256;  // that one claim of the convolution covers, of one sequence
constexpr std::int64_t kLanes = 16;          // partial sums of a dot product with C

constexpr std::array<float, kScanChannels> kOnes = [] {
  std::array<float, kScanChannels> ones{};
  ones.fill(1.0F);
  return ones;
}();

// A NaN stays one.
float softplus(float x) { return x <= 20.0F ? static_cast<float>(fixed_log(1.0 + fixed_exp(static_cast<double>(x)))) : x; }
float decayed(float exponent) { return std::isnan(exponent) ? exponent : static_cast<float>(fixed_exp(static_cast<double>(exponent))); }

// h = decay * h + x B and h C, of one row of a head's state.
float advance_row(float* h, float decay, float x, const float* b, const float* c, std::int64_t state) {
  std::array<float, kLanes> sums{};
  std::int64_t n = 0;
  for (; n + kLanes <= state; n += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = h[n + lane] * decay + x * b[n + lane];
      h[n + lane] = value;
      sums[static_cast<std::size_t>(lane)] += value * c[n + lane];
    }
  for (std::int64_t lane = 0; n < state; ++n, ++lane) {
    h[n] = h[n] * decay + x * b[n];
    sums[static_cast<std::size_t>(lane)] += h[n] * c[n];
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0F);
}

}  // namespace

void SelectiveState::mix(const step::Pass& pass, std::size_t index, const LayerShape& shape, const LayerWeights& layer, const KvArena& pool,
                         Workspace& space) const {
  const auto rows = static_cast<std::int64_t>(pass.tokens.size());
  const SelectiveStateShape& own = *shape.selective;
  const std::array inputs{Product{&layer.selective.input.matrix, space.mixed}};
  products_.run(inputs, rows, space, [&](std::int64_t row, float* scratch) {
    return residual_.read(row, shape.attention_norm, layer.attention_norm, space, scratch);
  });
  products_.add_bias(layer.selective.input, space.mixed, rows);
  convolve(pass, index, own, layer.selective, pool, space);
  scan(pass, index, own, layer.selective, pool, space);
  team_.for_chunks(rows, kRowChunk, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* y = space.attended[row];
      table_.swiglu(space.mixed[row], y, own.inner(), y);
      const bool sound = in_range(y, own.inner());
      normalise(table_, own.norm, layer.selective.norm, y, y);
      if (!sound) std::fill_n(y, own.inner(), std::numeric_limits<float>::quiet_NaN());
    }
  });
}

// silu(convolution) of x, B and C, to space.convolved.
void SelectiveState::convolve(const step::Pass& pass, std::size_t index, const SelectiveStateShape& shape,
                              const SelectiveStateWeights& weights, const KvArena& pool, Workspace& space) const {
  const std::int64_t width = shape.convolved();
  const std::int64_t chunks = (width + kScanChannels - 1) / kScanChannels;
  team_.for_chunks(static_cast<std::int64_t>(pass.sequences.size()) * chunks, 1, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t item = from; item < to; ++item) {
      const std::int64_t begin = item % chunks * kScanChannels;
      const std::int64_t end = std::min(width, begin + kScanChannels);
      const step::PassSequence& sequence = pass.sequences[static_cast<std::size_t>(item / chunks)];
      const CausalConvolution channels{weights.convolution, pass,          sequence,        pool,  index, width, shape.taps,
                                       space.mixed,         shape.inner(), space.convolved, begin, end};
      channels.start();
      for (std::int64_t token = 0; token < sequence.count; ++token) {
        channels.convolve(token);
        float* out = space.convolved[sequence.first + token] + begin;
        table_.swiglu(out, kOnes.data(), end - begin, out);
      }
      channels.keep();
    }
  });
}

void SelectiveState::scan(const step::Pass& pass, std::size_t index, const SelectiveStateShape& shape, const SelectiveStateWeights& weights,
                          const KvArena& pool, Workspace& space) const {
  const std::int64_t dim = shape.head_dim;
  const std::int64_t state = shape.state;
  team_.for_chunks(static_cast<std::int64_t>(pass.sequences.size()) * shape.heads, 1, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t item = from; item < to; ++item) {
      const step::PassSequence& sequence = pass.sequences[static_cast<std::size_t>(item / shape.heads)];
      const auto head = static_cast<std::int32_t>(item % shape.heads);
      const auto place = [&](std::uint32_t blocks) { return pool.state(pass.blocks.data() + blocks, index, shape.taps - 1 + head); };
      float* h = place(sequence.state);
      if (sequence.is_first) std::fill_n(h, dim * state, 0.0F);
      const std::int64_t group = head / (shape.heads / shape.groups);
      std::uint32_t snapshot = sequence.snapshot_begin;
      for (std::int32_t token = 0; token < sequence.count; ++token) {
        const std::int64_t row = sequence.first + token;
        const float* x = space.convolved[row] + head * dim;
        const float* b = space.convolved[row] + shape.inner() + group * state;
        const float* c = b + shape.groups * state;
        const float dt =
            softplus(space.mixed[row][shape.inner() + shape.convolved() + head] + weights.step_bias[static_cast<std::size_t>(head)]);
        const float decay = decayed(dt * weights.decay[static_cast<std::size_t>(head)]);
        for (std::int64_t i = 0; i < dim; ++i)
          space.attended[row][head * dim + i] =
              advance_row(h + i * state, decay, dt * x[i], b, c, state) + weights.skip[static_cast<std::size_t>(head)] * x[i];
        if (snapshot < sequence.snapshot_begin + sequence.snapshot_count && pass.snapshots[snapshot].count == token + 1)
          std::copy_n(h, dim * state, place(pass.snapshots[snapshot++].state));
      }
    }
  });
}

void SelectiveState::add(std::int64_t rows, const LayerShape& shape, const LayerWeights& layer, Workspace& space) const {
  residual_.add(layer.selective.output, shape.attention_post_norm, layer.attention_post_norm, shape.residual_scale, rows, space,
                [&](std::int64_t row, float*) { return space.attended.fetch(row, shape.selective->inner()); });
}

}  // namespace braid::model
