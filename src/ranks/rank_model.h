// What one rank has of a model: its share of the weights and of the pool, and the activations of a pass. A rank's own thread.
#pragma once

#include "braid/result.h"
#include "files/gguf.h"
#include "files/progress.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/kv_arena.h"
#include "model/model_shape.h"
#include "model/rank_gather.h"
#include "model/rope.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "ranks/message.h"
#include "step/pass.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::ranks {

class RankModel {
 public:
  // `exchange` outlives it; the file is not needed afterwards.
  static Result<std::unique_ptr<RankModel>> load(const files::GgufFile& file, const Setup& setup, const model::Share& share,
                                                 model::Exchange& exchange, const files::Progress& progress = {});

  Ready ready() const;
  Result<void> allocate(std::int32_t blocks, const files::Progress& progress = {});

  // Each throws std::logic_error for what does not fit the model and the pool, before anything is changed.
  void move(const Moves& moves);
  void run(const step::Pass& pass);
  model::Rows logits(const Wanted& wanted);
  void hidden(std::int64_t picked, std::span<float> out);

  // Of what was computed since the last call.
  Times take_times();

  std::int32_t vocab() const { return model_.vocab; }
  std::int64_t embedding() const { return model_.embedding; }

 private:
  RankModel(model::ModelShape shape, const kernels::KernelTable& table, std::unique_ptr<kernels::ThreadTeam> team, model::KvGroups groups,
            model::Weights weights, model::Workspace space, std::int32_t context, const model::Share& share, model::Exchange& exchange);

  void check(const step::Pass& pass) const;

  const model::ModelShape model_;
  const kernels::KernelTable& table_;
  const std::unique_ptr<kernels::ThreadTeam> team_;
  const model::KvGroups groups_;
  const model::Weights weights_;
  const std::vector<model::RopeTable> ropes_;
  model::RankGather gather_;
  const model::Transformer transformer_;
  model::Workspace space_;
  std::optional<model::KvArena> kv_;
  const std::int32_t context_;
  std::int64_t picked_ = 0;  // of the last pass
  double seconds_ = 0.0;     // since the last take_times()
};

}  // namespace braid::ranks
