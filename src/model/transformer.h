// The forward pass of the Llama family (Touvron et al. 2023): pre-norm blocks of grouped-query attention and SwiGLU over a paged
// key/value pool. No allocation, no I/O, no clock. A token's result depends on its sequence only, never on the other tokens of the
// batch, on slicing or on the number of threads.
#pragma once

#include "braid/generation_request.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/hyper_parameters.h"
#include "model/kv_arena.h"
#include "model/rope.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>
#include <span>

namespace braid::model {

// One token of a pass. Tokens of one sequence are adjacent and in order of position.
struct BatchToken {
  TokenId token = 0;
  std::int32_t position = 0;
  // The sequence's block table, covering `position`; blocks that neither it nor a later token sees may be -1.
  const std::int32_t* blocks = nullptr;
};

class Transformer {
 public:
  // All arguments outlive the transformer.
  Transformer(const HyperParameters& model, const Weights& weights, const RopeTable& rope, const kernels::KernelTable& table,
              kernels::ThreadTeam& team);

  // Computes at most shape.rows tokens, writes their keys and values to the pool, and leaves the residual stream of the tokens `picked`
  // (ascending indices) in `space`, one after the other. The last layer computes no others.
  void forward(std::span<const BatchToken> tokens, std::span<const std::int32_t> picked, const KvArena& kv, Workspace& space) const;

  // Logits of `count` of the tokens picked, at most shape.logit_rows, from the `begin`-th on, into space.logits.
  void logits(std::int64_t begin, std::int64_t count, Workspace& space) const;

 private:
  struct Product;
  class ClaimedPanels;

  void embed(std::span<const BatchToken> tokens, Workspace& space) const;
  void project(std::span<const BatchToken> tokens, std::int32_t layer, const KvArena& kv, Workspace& space) const;
  std::int64_t keep_rows(std::span<const std::int32_t> picked, Workspace& space) const;
  void attention_block(std::int64_t rows, std::int32_t layer, const KvArena& kv, Workspace& space) const;
  void rotate_and_store(const BatchToken& token, std::int64_t row, const LayerWeights& layer, const kernels::KvLayer& kv,
                        Workspace& space) const;
  void attend(std::int64_t rows, std::int32_t layer, const kernels::KvLayer& kv, Workspace& space) const;
  std::int64_t pieces_of(std::int64_t count) const;
  // Fills space.tile_begin; returns the number of tiles.
  std::int64_t cut_tiles(std::int64_t rows, Workspace& space) const;
  // Lists the parts of the rows; false when there are too many, or only one each.
  bool split_context(const kernels::AttentionArgs& args, std::int64_t rows, Workspace& space) const;
  void attend_in_parts(const kernels::AttentionArgs& shared, std::int64_t rows, Workspace& space) const;
  void feed_forward_block(std::int64_t rows, const LayerWeights& layer, Workspace& space) const;

  // Runs products that read the same rows. input(row, scratch) gives a row's values; it may compute them in `scratch`.
  template <class Input>
  void multiply(std::span<const Product> products, std::int64_t rows, Workspace& space, Input&& input) const;
  void multiply_prepared(std::span<const Product> products, std::int64_t rows, Workspace& space) const;

  const HyperParameters& model_;
  const Weights& weights_;
  const RopeTable& rope_;
  const kernels::KernelTable& table_;
  kernels::ThreadTeam& team_;
};

}  // namespace braid::model
