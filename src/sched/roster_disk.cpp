// What the roster does with the disk tier, and with what --kv-verify compares.
#include "sched/roster.h"

#include <fmt/format.h>
#include <utility>

namespace braid::sched {

void Roster::prefetch(Sequence& sequence) {
  if (!restorer_) return;
  stretch_if_long(sequence);
  restorer_->prefetch(sequence);
}

// After what the disk has of it.
void Roster::begin_prefill(Sequence& sequence) {
  if (!restorer_ || !restorer_->begin(sequence, prefill_rate_)) return end_restoration(sequence);
  sequence.phase = SequencePhase::kRestoring;
}

// Blocks behind which no state has come are others', and its own rows would write to them.
void Roster::end_restoration(Sequence& sequence) {
  const bool lacks_state = sequence.state != nullptr && sequence.state->awaits_behind * block_tokens_ > sequence.progress.planned();
  if (!lacks_state) return compute_rest(sequence);
  sequence.state->has_asked_disk = true;  // it would begin like this again and again where there is no room for blocks of its own
  retry(sequence);
  unhold(sequence);
}

void Roster::restore(step::StepPlan& plan, std::vector<Sequence*>& loading) {
  if (!restorer_) return;
  restored_.clear();
  restorer_->load(batch_, plan, loading, restored_);
  for (Sequence* sequence : restored_) end_restoration(*sequence);
}

void Roster::give_away() {
  if (!restorer_) return;
  if (!bequest_) bequest_.emplace(*prefix_index_, restorer_->tier(), groups_.count(), groups_.state_blocks());
  bequest_->go_on();
}

// The block that was computed is compared with those that a hit would have given instead.
void Roster::verify(const Sequence& sequence, std::int32_t index, std::int32_t group, cache::BlockId own, cache::BlockId known) {
  const auto what = [&](const char* level) {
    return fmt::format("the block in {} of positions {} to {} of request '{}'", level, index * block_tokens_,
                       (index + 1) * block_tokens_ - 1, sequence.request->id);
  };
  if (known != own) {
    checks_.push_back({own, known, group});
    checked_.push_back(what("RAM"));
    ++verified_blocks_;
  } else if (restorer_ && restorer_->tier().verify(group == 0 ? own : sequence.blocks[0][index], group, what("the disk cache"))) {
    ++verified_blocks_;
  }
}

void Roster::add_checks(step::StepPlan& plan, std::vector<std::string>& checked) {
  std::swap(plan.checks, checks_);
  std::swap(checked, checked_);
  checks_.clear();
  checked_.clear();
}

}  // namespace braid::sched
