// One model with one kind of pool, run over windows of text without a scheduler: logits of every position.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/kv_arena.h"
#include "model/model_shape.h"
#include "model/rope.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "model/workspace.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::perf {

class ForwardRun {
 public:
  static constexpr std::int32_t kRows = 64;  // tokens of one pass

  // Everything outlives the run. `context`: positions of a window.
  static Result<std::unique_ptr<ForwardRun>> create(const model::ModelShape& model, const model::Weights& weights,
                                                    const kernels::KernelTable& table, kernels::ThreadTeam& team, kernels::KvType kv_type,
                                                    std::int32_t context);

  // Computes at most kRows tokens at [position, position + tokens.size()) of the window.
  void forward(std::span<const TokenId> tokens, std::int32_t position);
  // Of the last forward(), a row for each token; valid until the next call.
  model::Rows logits();

 private:
  ForwardRun(const model::ModelShape& model, const model::Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team,
             std::int32_t context, model::KvArena kv, model::Workspace space);

  const std::vector<model::RopeTable> ropes_;
  const model::Transformer transformer_;
  const model::KvArena kv_;
  model::Workspace space_;
  step::Pass pass_;
};

}  // namespace braid::perf
