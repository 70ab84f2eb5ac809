// A convolution of each channel over a token and the few before it, which recurrent layers begin with.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/kv_arena.h"
#include "model/rows.h"
#include "model/weights.h"
#include "step/pass.h"

#include <cstddef>
#include <cstdint>

namespace braid::model {

inline constexpr std::int32_t kMostTaps = 64;
inline constexpr std::int64_t kConvolutionChannels = 256;  // that one claim covers, of one sequence

// Channels [begin, end) of one sequence in a pass, of which a token sees `taps` tokens, itself the last. The state is the inputs of the
// last taps - 1 tokens, the newest one last: the first parts of the layer's. Channels are independent and sum their taps in order of age, so
// that bits do not depend on slices or on who computes which.
struct CausalConvolution {
  const kernels::KernelTable& table;
  const ConvolutionWeights& weights;
  const step::Pass& pass;
  const step::PassSequence& sequence;
  const KvArena& pool;
  std::size_t layer;
  std::int64_t width;
  std::int32_t taps;      // at most kMostTaps
  Rows in;                // [rows, at least first + width]
  std::int64_t in_first;  // a row's first input
  Rows out;               // [rows, width]
  std::int64_t begin;
  std::int64_t end;

  // Before the first token of all there are zeros.
  void start() const;
  // The sum of each channel, or its silu.
  void convolve(std::int64_t token, bool silu) const;
  // Writes the state after the tokens of the pass, but for guesses, and the snapshots before it.
  void keep() const;

 private:
  std::int32_t past() const { return taps - 1; }
  float* state(std::uint32_t blocks, std::int32_t part) const { return pool.state(pass.blocks.data() + blocks, layer, part); }
  // Of the token that is `index` behind the sequence's first one in the pass; before it, of the state.
  const float* input(std::int64_t index) const {
    return index >= 0 ? in[sequence.first + index] + in_first : state(sequence.state, static_cast<std::int32_t>(past() + index));
  }
  // After the first `count` tokens; the oldest part first, so that it may be the one that is read.
  void keep(std::uint32_t blocks, std::int64_t count) const;
};

// silu(convolution) of the `width` values of each row of `in` from in_first on, to `out`, for all sequences of the pass.
struct ConvolvedRows {
  const ConvolutionWeights& weights;
  std::size_t layer;
  std::int64_t width;
  std::int32_t taps;
  Rows in;
  std::int64_t in_first;
  Rows out;
};
void convolve_rows(const kernels::KernelTable& table, kernels::ThreadTeam& team, const step::Pass& pass, const KvArena& pool,
                   const ConvolvedRows& rows);

}  // namespace braid::model
