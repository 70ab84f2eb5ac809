// What becomes of recurrent states when it is known which guesses were right.
#include "model/language_model.h"

#include <cstring>

namespace braid::model {

// States go on behind the guesses that turned out right.
void LanguageModel::replay_drafts(const step::StepResult& result) {
  replay_.clear();
  for (std::size_t i = 0; i < pass_.sequences.size(); ++i) {
    const step::PassSequence& sequence = pass_.sequences[i];
    const auto right = static_cast<std::int32_t>(result.rows[pass_rows_[i]].more_count);
    if (sequence.drafted == 0 || right == 0) continue;
    const auto state = pass_.blocks.begin() + sequence.state;
    replay_.sequences.push_back({.first = static_cast<std::int64_t>(replay_.tokens.size()),
                                 .count = right,
                                 .state = static_cast<std::uint32_t>(replay_.blocks.size()),
                                 .kept = sequence.kept});
    replay_.blocks.insert(replay_.blocks.end(), state, state + kv_groups_.states.blocks());
    const auto guesses = pass_.tokens.begin() + sequence.first + sequence.count - sequence.drafted;
    replay_.tokens.insert(replay_.tokens.end(), guesses, guesses + right);
  }
  if (!replay_.tokens.empty()) decoder_->transformer.replay(replay_, *kv_, space_);
}

// Behind rows that verify, now that it is known where they end.
void LanguageModel::copy_states(const step::StepPlan& plan, const step::StepResult& result) const {
  for (std::size_t index = 0; index < plan.rows.size(); ++index) {
    const step::StepRow& row = plan.rows[index];
    if (row.output != step::RowOutput::kVerify || row.snapshot_count == 0 || !result.rows[index].ran) continue;
    const std::int32_t* const from = plan.blocks.data() + row.state_begin;
    const std::int32_t* const to = plan.blocks.data() + plan.snapshots[row.snapshot_begin].block_begin;
    for (std::int32_t part = 0; part < kv_groups_.states.blocks(); ++part)
      std::memcpy(kv_->block(to[part]).data(), kv_->block(from[part]).data(), kv_->block_bytes());
  }
}

}  // namespace braid::model
