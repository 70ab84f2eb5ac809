#include "model/causal_convolution.h"

#include <algorithm>
#include <array>

namespace braid::model {

void CausalConvolution::start() const {
  for (std::int32_t part = 0; sequence.is_first && part < past(); ++part) {
    float* zeros = state(sequence.state, part);
    std::fill(zeros + begin, zeros + end, 0.0F);
  }
}

void CausalConvolution::convolve(std::int64_t token, bool silu) const {
  std::array<const float*, kMostTaps> inputs;
  for (std::int32_t tap = 0; tap < taps; ++tap) inputs[static_cast<std::size_t>(tap)] = input(token - past() + tap);
  table.convolve({.inputs = inputs.data(),
                  .weights = weights.taps.data(),
                  .bias = weights.bias.empty() ? nullptr : weights.bias.data(),
                  .out = out[sequence.first + token],
                  .stride = width,
                  .taps = taps,
                  .silu = silu},
                 begin, end);
}

void CausalConvolution::keep() const {
  for (std::uint32_t i = 0; i < sequence.snapshot_count; ++i) {
    const step::PassSnapshot& snapshot = pass.snapshots[sequence.snapshot_begin + i];
    keep(snapshot.state, snapshot.count);
  }
  keep(sequence.state, sequence.count - sequence.drafted);
}

void CausalConvolution::keep(std::uint32_t blocks, std::int64_t count) const {
  for (std::int32_t part = 0; part < past(); ++part) {
    const float* from = input(count - past() + part);
    float* to = state(blocks, part);
    if (from != to) std::copy(from + begin, from + end, to + begin);
  }
}

void convolve_rows(const kernels::KernelTable& table, kernels::ThreadTeam& team, const step::Pass& pass, const KvArena& pool,
                   const ConvolvedRows& rows) {
  const std::int64_t chunks = (rows.width + kConvolutionChannels - 1) / kConvolutionChannels;
  team.for_chunks(static_cast<std::int64_t>(pass.sequences.size()) * chunks, 1, [&](std::int64_t from, std::int64_t to, int) {
    for (std::int64_t item = from; item < to; ++item) {
      const std::int64_t begin = item % chunks * kConvolutionChannels;
      const std::int64_t end = std::min(rows.width, begin + kConvolutionChannels);
      const step::PassSequence& sequence = pass.sequences[static_cast<std::size_t>(item / chunks)];
      const CausalConvolution channels{table,     rows.weights, pass,          sequence, pool,  rows.layer, rows.width,
                                       rows.taps, rows.in,      rows.in_first, rows.out, begin, end};
      channels.start();
      for (std::int64_t token = 0; token < sequence.count; ++token) channels.convolve(token, true);
      channels.keep();
    }
  });
}

}  // namespace braid::model
