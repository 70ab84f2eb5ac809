// The forward pass of a decoder: layers of attention over a paged key/value pool, or of what carries a state on, and of feed-forward
// networks, each added to a residual stream. No allocation, no I/O, no clock. A token's result depends on its sequence only, never on the other tokens of the batch, on
// slicing or on the number of threads.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/adapters/adapter_table.h"
#include "model/attention.h"
#include "model/delta_rule.h"
#include "model/feed_forward.h"
#include "model/kv_arena.h"
#include "model/layer_inputs.h"
#include "model/learned_residual.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/residual_stream.h"
#include "model/rope.h"
#include "model/selective_state.h"
#include "model/short_convolution.h"
#include "model/stream_mix.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"

#include <cstdint>
#include <span>

namespace braid::model {

class Transformer {
 public:
  // All arguments outlive the transformer. `ropes`: rope_tables(); `adapters`: what tokens name, or null;
  // `ranks`: who computes it together with others, or null.
  Transformer(const ModelShape& model, const Weights& weights, std::span<const RopeTable> ropes, const kernels::KernelTable& table,
              kernels::ThreadTeam& team, const AdapterTable* adapters = nullptr, RankGather* ranks = nullptr);
  Transformer(const Transformer&) = delete;  // its parts refer to each other
  Transformer& operator=(const Transformer&) = delete;

  // Computes at most shape.rows tokens, writes their keys and values to the pool, and leaves the residual stream of the tokens that are
  // picked in `space`, one after the other. The last layer computes no others.
  void forward(const step::Pass& pass, const KvArena& kv, Workspace& space) const {
    for (PassState state = begin(pass, space); advance(pass, kv, space, state);) {
    }
  }

  // The same in pieces: a layer at a time, while `advance` says that one is left. Between two of them a pass may lie as long as it wants,
  // and others, with a workspace and blocks of their own, may run.
  struct PassState {
    std::size_t layer = 0;  // the next one
    std::int64_t rows = 0;  // that it computes
  };
  PassState begin(const step::Pass& pass, Workspace& space) const;
  bool advance(const step::Pass& pass, const KvArena& kv, Workspace& space, PassState& state) const;

  // Carries the states of recurrent layers on behind tokens that were guesses of the last pass and turned out right: those of this one, which
  // follow what its sequences' states stand for. Before the next pass.
  void replay(const step::Pass& pass, const KvArena& kv, Workspace& space) const;

  // Logits of `count` of the tokens picked, at most shape.logit_rows, from the `begin`-th on, into space.logits.
  void logits(std::int64_t begin, std::int64_t count, Workspace& space) const;

  // The hidden state after the final norm of one of the tokens picked, [embedding]; NaNs when its residual stream has overflowed.
  void hidden(std::int64_t picked, const Workspace& space, float* out) const;

 private:
  Stage stage() const { return products_.ranks() != nullptr ? products_.ranks()->stage() : Stage{}; }
  void embed(const step::Pass& pass, Workspace& space) const;
  void embed(const step::Pass& pass, std::int64_t row, float* scratch, Workspace& space) const;
  const float* given_of(const step::Pass& pass, const step::PassToken& token, std::int32_t part) const;
  void add_given(const step::Pass& pass, std::int32_t part, Workspace& space) const;
  // Behind a layer's branches: what it has of its inputs, its scale, and the other streams.
  void finish_layer(std::int64_t rows, std::size_t index, Workspace& space) const;
  void finish_logits(std::int64_t count, Workspace& space) const;
  std::int64_t keep_rows(std::span<const std::int32_t> picked, std::size_t index, Workspace& space) const;

  const ModelShape& model_;
  const Weights& weights_;
  const std::span<const RopeTable> ropes_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
  const AdapterTable* adapters_;
  const ProductRunner products_;
  const ResidualStream residual_;
  const Attention attention_;
  const ShortConvolution convolution_;
  const SelectiveState selective_;
  const DeltaRule delta_;
  const FeedForward feed_forward_;
  const LearnedResidual learned_residual_;
  const LayerInputs layer_inputs_;
  const StreamMix streams_;
};

}  // namespace braid::model
