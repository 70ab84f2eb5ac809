// Turns the batch into the rows of one step.
#pragma once

#include "sched/draft_pace.h"
#include "sched/options.h"
#include "sched/prefill_pace.h"
#include "sched/sequence.h"
#include "step/step.h"

#include <cstdint>
#include <string>
#include <vector>

namespace braid::sched {

// A plan in the making, and whose rows it has.
struct PlannedStep {
  step::StepPlan* plan = nullptr;
  std::vector<Sequence*> members;  // parallel to plan->rows
  StepShape shape;
  std::vector<Sequence*> loading;    // whose blocks plan->loads are
  std::vector<std::string> checked;  // what plan->checks compare
};

// Decides from sequences and options alone; counts what it plans into the sequences. No clock, no queue, no Asio.
class BatchPlanner {
 public:
  explicit BatchPlanner(const SchedulerOptions& options)
      : groups_(options.groups, options.block_tokens, options.state_blocks), block_tokens_(options.block_tokens),
        max_batch_tokens_(options.max_batch_tokens), max_batch_(options.max_batch), draft_tokens_(options.draft_tokens),
        state_interval_(options.prefix_cache && !options.kv_verify && options.most_state_blocks >= options.state_blocks
                            ? options.state_interval
                            : kNoCheckpoints),
        turn_ends_(options.turn_ends), media_whole_(options.media_whole), stretch_beyond_(options.stretch_beyond) {}

  // A row for every sequence that can decode or take it up again, best rank first, with the KV block that it needs. Those whose stream is
  // full go to `full`. Tokens are guessed as far as `pace` says. False when a sequence had to stay out for want of a block.
  bool add_decodes(SequenceMap& batch, PlannedStep& step, const DraftPace& pace, std::vector<Sequence*>& full) const;
  // The rows that it will add, without guesses.
  static StepShape decode_shape(const SequenceMap& batch);

  // Slices of prefills, best rank first, within what the step's tokens, the pace and the sequence's blocks allow, which are taken as far
  // as there are any. add_decodes() comes first.
  void add_prefills(SequenceMap& batch, PlannedStep& step, const PrefillPace& pace) const;
  // The same of one, of at most `room` tokens. Returns how many.
  std::int32_t add_prefill(Sequence& sequence, PlannedStep& step, std::int32_t room) const;

 private:
  std::int32_t blocks_for(std::int32_t positions) const { return (positions + block_tokens_ - 1) / block_tokens_; }
  std::int32_t drafts(Sequence& sequence, const PlannedStep& step, const DraftPace& pace) const;
  inline bool cover(Sequence& sequence, std::int32_t drafts) const;
  void add_start(Sequence& sequence, step::StepPlan& plan) const;
  static void add_given(const Sequence& sequence, step::StepPlan& plan, step::StepRow& row);
  static void add_scored(const Sequence& sequence, step::StepPlan& plan, step::StepRow& row);
  std::int32_t slice(Sequence& sequence, std::int32_t room) const;
  std::int32_t whole_media(const Sequence& sequence, std::int32_t count, bool may_grow) const;
  inline void add_blocks(const Sequence& sequence, step::StepPlan& plan, step::StepRow& row) const;
  void add_state(Sequence& sequence, step::StepPlan& plan, step::StepRow& row) const;
  std::int32_t next_checkpoint(Sequence& sequence, std::int32_t end, const step::StepRow& row) const;
  bool passes_checkpoint(RecurrentState& state, const step::StepRow& row) const;
  void look_for_turns(Sequence& sequence) const;
  bool is_turn_end(const Sequence& sequence, std::int32_t end) const;
  void complete_row(Sequence& sequence, PlannedStep& step, step::StepRow& row) const;

  const Groups groups_;
  std::int32_t block_tokens_;
  std::int32_t max_batch_tokens_;
  std::int32_t max_batch_;
  std::int32_t draft_tokens_;
  static constexpr std::int32_t kNoCheckpoints = -1;
  std::int32_t state_interval_;  // 0: none at intervals
  std::vector<TokenId> turn_ends_;
  bool media_whole_;
  std::int32_t stretch_beyond_;
};

}  // namespace braid::sched
