// A small model that guesses for a large one.
#pragma once

#include "braid/result.h"
#include "model/drafting/confidence.h"
#include "model/drafting/drafter.h"
#include "model/drafting/mapped_text.h"
#include "model/drafting/token_map.h"
#include "step/step.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace braid::model {

class LanguageModel;

// It draws as the large one does, with the same seeds at the same positions, so that where both are of one mind they say the same also at a
// temperature; where its tokens are others, it reads and guesses by the text that they stand for, its own best ones. Sequences have caches in a pool of its own, which are computed as guesses are wanted: a few hundred tokens in a step, so that
// a long prompt is caught up with by and by. A sequence that has ended, or was preempted, leaves its cache to the next one that begins like
// it; where blocks are short, the cache that was not used for longest is given up. Strand only.
class ModelDrafter final : public Drafter {
 public:
  // Without recurrent layers. `slots`: of the large model, and no more than its own. `map`: null where both have the same tokens.
  ModelDrafter(std::unique_ptr<LanguageModel> model, std::size_t slots, std::unique_ptr<const TokenMap> map = nullptr);
  ~ModelDrafter() override;

  // Before the first step: as LanguageModel's, so many for each group of its layers.
  Result<void> allocate_kv(std::int32_t blocks);
  std::uint64_t block_bytes() const;  // of all groups
  const LanguageModel& model() const { return *model_; }

  void start(const step::SlotStart& start) override;
  void end(step::SlotId slot) override;
  void draft(std::span<DraftWish> wishes) override;

 private:
  static constexpr std::int32_t kCatchUp = 512;  // tokens of a step, of all sequences
  static constexpr std::size_t kNoCache = ~std::size_t{0};

  struct Cache {
    std::vector<TokenId> held;                      // positions [0, held) are computed
    std::vector<std::vector<std::int32_t>> blocks;  // [groups][places]
    std::uint64_t used = 0;                         // the step that used it last
    std::optional<step::SlotId> owner;
  };
  struct Going {
    DraftWish* wish = nullptr;
    Cache* cache = nullptr;
    double chance = 1.0;  // that all guesses so far are right
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
  Cache& cache_of(const DraftWish& wish);
  bool cover(Cache& cache, std::size_t positions);
  bool take_blocks_of_others();
  void give_up(Cache& cache);
  bool catch_up(DraftWish& wish, std::int32_t& room);
  void add_start(step::SlotId slot);
  step::StepRow& add_row(step::SlotId slot, const Cache& cache);
  void compute();
  void take_guesses();
  void learn(const DraftWish& wish);

  const std::unique_ptr<LanguageModel> model_;
  const std::unique_ptr<const TokenMap> map_;  // null: both have the same tokens
  std::vector<Mapped> mapped_;                 // by slot; empty without a map
  std::vector<DraftWish> own_wishes_;
  std::vector<TokenId> mapped_guesses_;
  std::vector<std::int32_t> free_;
  std::vector<Cache> caches_;
  std::vector<std::size_t> by_slot_;
  std::vector<SamplingParams> sampling_;  // by slot
  std::vector<Guessed> guessed_;          // likewise
  Confidence confidence_;
  std::uint64_t step_ = 0;
  std::vector<Going> going_;  // parallel to the plan's rows
  step::StepPlan plan_;
  step::StepResult result_;
};

}  // namespace braid::model
