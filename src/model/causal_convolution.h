// A convolution of each channel over a token and the few before it, which recurrent layers begin with.
#pragma once

#include "model/kv_arena.h"
#include "model/rows.h"
#include "model/weights.h"
#include "step/pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace braid::model {

// Channels [begin, end) of one sequence in a pass, of which a token sees `taps` tokens, itself the last. The state is the inputs of the last taps - 1 tokens, the newest one last: the first parts
// of the layer's. Channels are independent and sum their taps in order of age, so that bits do not depend on slices or on who computes which.
struct CausalConvolution {
  const ConvolutionWeights& weights;
  const step::Pass& pass;
  const step::PassSequence& sequence;
  const KvArena& pool;
  std::size_t layer;
  std::int64_t width;
  std::int32_t taps;
  Rows in;                // [rows, at least first + width]
  std::int64_t in_first;  // a row's first input
  Rows out;               // [rows, width]
  std::int64_t begin;
  std::int64_t end;

  std::int32_t past() const { return taps - 1; }
  float* state(std::uint32_t blocks, std::int32_t part) const { return pool.state(pass.blocks.data() + blocks, layer, part); }
  // Of the token that is `index` behind the sequence's first one in the pass; before it, of the state.
  const float* input(std::int64_t index) const {
    return index >= 0 ? in[sequence.first + index] + in_first : state(sequence.state, static_cast<std::int32_t>(past() + index));
  }

  // Before the first token of all there are zeros.
  void start() const {
    for (std::int32_t part = 0; sequence.is_first && part < past(); ++part) {
      float* zeros = state(sequence.state, part);
      std::fill(zeros + begin, zeros + end, 0.0F);
    }
  }

  void convolve(std::int64_t token) const {
    float* to = out[sequence.first + token];
    if (weights.bias.empty()) {
      std::fill(to + begin, to + end, 0.0F);
    } else {
      std::copy(weights.bias.begin() + begin, weights.bias.begin() + end, to + begin);
    }
    for (std::int32_t tap = 0; tap < taps; ++tap) {
      const float* x = input(token - past() + tap);
      const float* weight = weights.taps.data() + tap * width;
      for (std::int64_t channel = begin; channel < end; ++channel) to[channel] += weight[channel] * x[channel];
    }
  }

  // Writes the state after the tokens of the pass, and the snapshots before it.
  void keep() const {
    for (std::uint32_t i = 0; i < sequence.snapshot_count; ++i) {
      const step::PassSnapshot& snapshot = pass.snapshots[sequence.snapshot_begin + i];
      keep(snapshot.state, snapshot.count);
    }
    keep(sequence.state, sequence.count);
  }

 private:
  // After the first `count` tokens; the oldest part first, so that it may be the one that is read.
  void keep(std::uint32_t blocks, std::int64_t count) const {
    for (std::int32_t part = 0; part < past(); ++part) {
      const float* from = input(count - past() + part);
      float* to = state(blocks, part);
      if (from != to) std::copy(from + begin, from + end, to + begin);
    }
  }
};

}  // namespace braid::model
