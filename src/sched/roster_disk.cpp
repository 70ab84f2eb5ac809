// What the roster does with the disk tier: a sequence's prefix is read while it waits and loaded once it is in the batch.
#include "sched/roster.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace braid::sched {

void Roster::prefetch(Sequence& sequence) {
  if (!disk_tier_ || kv_verify_ || sequence.computes_all()) return;
  const auto wanted = sequence.view().first(sequence.tokens.size() - 1);
  path_.clear();
  prefix_index_->match(wanted, path_);
  sequence.restoration = disk_tier_->prefetch(wanted, static_cast<std::int32_t>(path_.size()));
}

// After what the disk has of it.
void Roster::begin_prefill(Sequence& sequence) {
  const bool may_restore =
      disk_tier_ && !kv_verify_ && sequence.progress.planned() == sequence.progress.published_positions() && !sequence.computes_all();
  if (!may_restore || (!disk_always_ && !restore_choice_.takes_disk(prefill_rate_, sequence.restoration != nullptr))) {
    sequence.restoration.reset();
  } else {
    sequence.restoration = disk_tier_->restore(std::move(sequence.restoration), sequence.view().first(sequence.tokens.size() - 1),
                                               sequence.progress.published());
  }
  if (sequence.restoration == nullptr) return compute_rest(sequence);
  sequence.phase = SequencePhase::kRestoring;
}

// All full blocks that have come back, whether they are published or not: where the pool has evicted the beginning of a sequence with a
// window, the tree takes nothing more of it, but the disk does.
void Roster::save_full(Sequence& sequence) {
  for (std::int32_t end = (sequence.progress.saved() + 1) * block_tokens_; end <= sequence.progress.computed(); end += block_tokens_) {
    const auto begin = static_cast<std::size_t>(end - block_tokens_);
    sequence.saved_key = prefix_index_->next_key(sequence.saved_key, sequence.view(), begin);
    const cache::BlockId block = sequence.blocks[0][sequence.progress.saved()];
    sequence.progress.save();
    if (block != cache::BlockTable::kAbsent)
      disk_tier_->save(block, sequence.saved_key, sequence.view().first(static_cast<std::size_t>(end)));
  }
}

void Roster::restore(step::StepPlan& plan, std::vector<Sequence*>& loading) {
  if (!disk_tier_) return;
  for (auto& [rank, sequence] : batch_) {
    if (sequence.phase != SequencePhase::kRestoring) continue;
    if (groups_.any_window()) move_window(sequence, groups_, places_to_restore(sequence));
    const std::int32_t loaded = disk_tier_->load(sequence.restoration, sequence.blocks[0].all(), plan);
    sequence.progress.reuse(loaded * block_tokens_);
    disk_hit_tokens_ += static_cast<std::uint64_t>(loaded * block_tokens_);
    if (loaded > 0) {
      sequence.progress.name();
      loading.push_back(&sequence);
    }
    if (!sequence.restoration->has_ended()) continue;
    const std::chrono::duration<double> taken = sequence.restoration->progress - sequence.restoration->begun;
    restore_choice_.observe(sequence.restoration->loaded * block_tokens_, taken.count());
    sequence.restoration.reset();
    compute_rest(sequence);
  }
}

// What is seen at once, and the places of what is not seen any more.
std::int32_t Roster::places_to_restore(const Sequence& sequence) const {
  const auto invisible = groups_.invisible(0, sequence.progress.planned());
  return std::min(sequence.restoration->end, groups_.window_blocks(0) + std::max(0, invisible.last - invisible.first));
}

// The block that was computed is compared with those that a hit would have given instead.
void Roster::verify(const Sequence& sequence, std::int32_t index, cache::BlockId own, cache::BlockId known) {
  const auto what = [&](const char* level) {
    return fmt::format("the block in {} of positions {} to {} of request '{}'", level, index * block_tokens_,
                       (index + 1) * block_tokens_ - 1, sequence.id);
  };
  if (known != own) {
    checks_.push_back({own, known});
    checked_.push_back(what("RAM"));
    ++verified_blocks_;
  } else if (disk_tier_ && disk_tier_->verify(own, what("the disk cache"))) {
    ++verified_blocks_;
  }
}

void Roster::add_checks(step::StepPlan& plan, std::vector<std::string>& checked) {
  std::swap(plan.checks, checks_);
  std::swap(checked, checked_);
  checks_.clear();
  checked_.clear();
}

bool Roster::give_up_restoring(std::chrono::steady_clock::time_point since) {
  bool any = false;
  for (auto& [rank, sequence] : batch_) {
    if (sequence.phase != SequencePhase::kRestoring || sequence.restoration->progress > since) continue;
    if (sequence.restoration->has_next() || sequence.progress.is_in_flight())
      continue;  // it waits for steps that take long, not for the disk
    sequence.restoration->end = sequence.restoration->next;
    any = true;
  }
  return any;
}

}  // namespace braid::sched
