// A model's own head for tokens further on (PredictionShape) guesses for it.
#pragma once

#include "braid/result.h"
#include "files/mapping.h"
#include "kernels/kernel_table.h"
#include "kernels/thread_team.h"
#include "model/drafting/drafter.h"
#include "model/kv_arena.h"
#include "model/model_shape.h"
#include "model/product_runner.h"
#include "model/rope.h"
#include "model/sampling/sampler.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "step/pass.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

// The head reads, for each position, the hidden state there and the token that came next. It hears the hidden states of rows that sample, of a
// prompt those of its end; what it has not heard it does not attend to, which costs guesses and nothing else. Its keys and values lie in a pool
// of its own, for a few sequences at once and so many positions of each; who has read more begins anew. Further guesses follow from its own
// hidden states. Strand only.
class HeadDrafter final : public Drafter {
 public:
  // All arguments outlive it. The model has such a head, in shape and weights. `slots`: of the model.
  static Result<std::unique_ptr<HeadDrafter>> create(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table,
                                                     kernels::ThreadTeam& team, std::size_t slots, std::int32_t block_tokens,
                                                     files::HugePages pages);

  // What create() would take; the weights need no data.
  static std::size_t bytes(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, int members,
                           std::int32_t block_tokens);
  std::size_t bytes() const { return space_.storage.size() + kv_.bytes(); }

  static constexpr std::int32_t kMostHeard = 256;  // positions of a sequence that are kept until a guess is wanted

  // Whether the slot's hidden states are of use.
  bool listens(step::SlotId slot) const { return by_slot_[slot] != kNoCache; }
  // hidden: [embedding], after the model's last norm, at `position` of the slot's text, which will not change any more.
  void hear(step::SlotId slot, std::int32_t position, std::span<const float> hidden);

  void start(const step::SlotStart& start) override;
  void end(step::SlotId slot) override;
  void draft(std::span<DraftWish> wishes) override;

 private:
  static constexpr std::size_t kCaches = 16;
  static constexpr std::int32_t kPositions = 1024;  // of one
  static constexpr std::int32_t kPassRows = 512;    // of all sequences
  static constexpr std::size_t kNoCache = ~std::size_t{0};

  struct Cache {
    std::optional<step::SlotId> owner;
    std::int32_t first = 0;    // position of the text that it begins with
    std::int32_t held = 0;     // so many of them are computed
    std::vector<float> heard;  // [heard, embedding]: the hidden states of those that follow
    std::uint64_t used = 0;
  };
  struct Going {
    DraftWish* wish = nullptr;
    std::size_t cache = 0;
    std::vector<float> hidden;  // of its last position
  };

  HeadDrafter(const ModelShape& model, const Weights& weights, const kernels::KernelTable& table, kernels::ThreadTeam& team,
              std::size_t slots, Workspace space, KvArena kv);

  std::int32_t heard(const Cache& cache) const { return static_cast<std::int32_t>(cache.heard.size()) / shape_.embedding; }
  void begin_pass();
  // One position more of a cache: behind `hidden` came `token`.
  void add(std::size_t cache, std::int32_t index, TokenId token, std::span<const float> hidden);
  bool read(DraftWish& wish, std::int32_t& room);
  void compute();
  void take_guesses();

  const ModelShape shape_;  // of the one layer
  const PredictionShape& prediction_;
  const PredictionWeights& own_;
  const Weights weights_;  // of the one layer, whose matrices are the model's
  const kernels::KernelTable& table_;
  const std::vector<RopeTable> ropes_;
  const Transformer transformer_;
  const ProductRunner products_;
  Workspace space_;
  KvArena kv_;
  Sampler sampler_;
  std::vector<Cache> caches_;
  std::vector<std::size_t> by_slot_;
  std::vector<SamplingParams> sampling_;  // by slot
  std::uint64_t uses_ = 0;
  std::vector<float> joined_;  // [rows, 2 embedding], what the pass's rows are made of
  step::Pass pass_;
  std::vector<Going> going_;  // parallel to pass_.picked
};

}  // namespace braid::model
