// A small model that guesses for a large one.
#pragma once

#include "braid/result.h"
#include "model/drafting/confidence.h"
#include "model/drafting/draft_caches.h"
#include "model/drafting/drafter.h"
#include "model/drafting/held_tokens.h"
#include "model/drafting/mapped_text.h"
#include "model/drafting/token_map.h"
#include "step/step.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

class LanguageModel;

// It draws as the large one does, with the same seeds at the same positions, so that where both are of one mind they say the same also at a
// temperature; where its tokens are others, it reads and guesses by the text that they stand for, its own best ones.
//
// Its pool has a block for each of the large model's, and a sequence's keys and values lie in the blocks of the same numbers as the large
// one's: so they are found with a prefix, forked, kept through a preemption, and written to disk with these. Where its tokens are others, or the
// large model gives no blocks (DraftWish), sequences have caches of their own. What is missing is computed as guesses are wanted, a few hundred
// tokens in a step, so that a long prompt is caught up with by and by. Strand only.
class ModelDrafter final : public Drafter {
 public:
  // Without recurrent layers. `slots`: of the large model, and no more than its own. `map`: null where both have the same tokens.
  ModelDrafter(std::unique_ptr<LanguageModel> model, std::size_t slots, std::unique_ptr<const TokenMap> map = nullptr);
  ~ModelDrafter() override;

  // Before the first step: as many as the large model has, for each group of its layers; and, where that may grow, as many as it may have.
  Result<void> allocate_kv(std::int32_t blocks, std::int32_t most = 0);
  std::uint64_t block_bytes() const;  // of all groups
  const LanguageModel& model() const { return *model_; }
  LanguageModel& model() { return *model_; }

  void start(const step::SlotStart& start) override;
  void end(step::SlotId slot) override;
  void draft(std::span<DraftWish> wishes) override;
  std::size_t saved_bytes() const override;
  void move(const step::StepPlan& plan, std::size_t block_bytes) override;
  void give_up() override;

  // Its pool's memory is the system's again. Any thread.
  bool has_given_up() const { return has_given_up_.load(std::memory_order_acquire); }

 private:
  static constexpr std::int32_t kCatchUp = 512;  // tokens of a step, of all sequences

  struct Going {
    DraftWish* wish = nullptr;
    std::span<const std::int32_t> blocks;  // that cover text and guesses
    std::size_t held = 0;                  // positions [0, held) are computed, with those of the pass that is planned
    double chance = 1.0;                   // that all guesses so far are right
  };
  // What it guessed for a slot the last time, to be held against what came.
  struct Guessed {
    std::size_t begin = 0;  // of the text
    std::vector<TokenId> tokens;
    std::vector<float> logprobs;
  };

  // A wish in its own tokens.
  struct Mapped {
    MappedText text;
    std::vector<TokenId> guesses;
  };

  void draft_mapped(std::span<DraftWish> wishes);
  void draft_own(std::span<DraftWish> wishes);
  std::span<const std::int32_t> blocks_for(const DraftWish& wish);
  bool is_written(std::span<const std::int32_t> blocks, std::size_t begin);
  void catch_up(DraftWish& wish, std::int32_t& room);
  void add_start(step::SlotId slot);
  step::StepRow& add_row(Going& going, std::size_t count);
  void compute();
  void add_copies(std::int32_t block, std::span<std::byte> bytes, std::vector<step::BlockCopy>& copies) const;
  void add_moves(const step::StepPlan& plan, std::size_t block_bytes);
  // In the draft's pool, which is taken into use from its beginning.
  std::int32_t place(std::int32_t block, std::int32_t group) const { return block * groups_ + group; }
  void take_guesses();
  void learn(const DraftWish& wish);

  const std::unique_ptr<LanguageModel> model_;
  const std::unique_ptr<const TokenMap> map_;  // null: both have the same tokens
  std::vector<Mapped> mapped_;                 // by slot; empty without a map
  std::vector<DraftWish> own_wishes_;
  std::vector<TokenId> mapped_guesses_;
  const std::int32_t groups_;             // of its layers, each with a block for each of the large model's
  HeldTokens held_;                       // by block
  DraftCaches caches_;                    // of sequences that have no blocks of the large model
  std::vector<std::uint64_t> written_;    // by block: the step that wrote to it last
  std::vector<SamplingParams> sampling_;  // by slot
  std::vector<Guessed> guessed_;          // likewise
  Confidence confidence_;
  std::uint64_t step_ = 0;
  std::atomic<bool> has_given_up_{false};
  std::vector<Going> going_;  // parallel to the plan's rows
  step::StepPlan plan_;
  step::StepResult result_;
};

}  // namespace braid::model
