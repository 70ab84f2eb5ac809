#include "sched/restorer.h"

#include <algorithm>
#include <utility>

namespace braid::sched {

Restorer::Restorer(store::BlockStore& store, cache::PrefixIndex& index, const Groups& groups, const SchedulerOptions& options,
                   std::function<void()> on_progress)
    : index_(index), groups_(groups), block_tokens_(options.block_tokens), kv_verify_(options.kv_verify), disk_always_(options.disk_always),
      tier_(store, index, options, std::move(on_progress)) {}

void Restorer::prefetch(Sequence& sequence) {
  if (kv_verify_ || sequence.computes_all()) return;
  const auto wanted = sequence.view().first(sequence.tokens.size() - 1);
  path_.clear();
  index_.match(wanted, path_);
  sequence.restoration = tier_.prefetch(wanted, static_cast<std::int32_t>(path_.size()));
}

bool Restorer::begin(Sequence& sequence, double prefill_rate) {
  const bool may_restore =
      !kv_verify_ && sequence.progress.planned() == sequence.progress.published_positions() && !sequence.computes_all();
  if (!may_restore || (!disk_always_ && !choice_.takes_disk(prefill_rate, sequence.restoration != nullptr))) {
    sequence.restoration.reset();
  } else {
    sequence.restoration =
        tier_.restore(std::move(sequence.restoration), sequence.view().first(sequence.tokens.size() - 1), sequence.progress.published());
  }
  return sequence.restoration != nullptr;
}

void Restorer::load(SequenceMap& batch, step::StepPlan& plan, std::vector<Sequence*>& loading, std::vector<Sequence*>& restored) {
  for (auto& [rank, sequence] : batch) {
    if (sequence.phase != SequencePhase::kRestoring) continue;
    if (groups_.any_window()) move_window(sequence, groups_, places_to_restore(sequence));
    const std::int32_t loaded = tier_.load(sequence.restoration, sequence.blocks[0].all(), plan);
    sequence.progress.reuse(loaded * block_tokens_);
    hit_tokens_ += static_cast<std::uint64_t>(loaded * block_tokens_);
    if (loaded > 0) {
      sequence.progress.name();
      loading.push_back(&sequence);
    }
    if (!sequence.restoration->has_ended()) continue;
    const std::chrono::duration<double> taken = sequence.restoration->progress - sequence.restoration->begun;
    choice_.observe(sequence.restoration->loaded * block_tokens_, taken.count());
    sequence.restoration.reset();
    restored.push_back(&sequence);
  }
}

// What is seen at once, and the places of what is not seen any more.
std::int32_t Restorer::places_to_restore(const Sequence& sequence) const {
  const auto invisible = groups_.invisible(0, sequence.progress.planned());
  return std::min(sequence.restoration->end, groups_.window_blocks(0) + std::max(0, invisible.last - invisible.first));
}

bool Restorer::give_up(SequenceMap& batch, std::chrono::steady_clock::time_point since) {
  bool any = false;
  for (auto& [rank, sequence] : batch) {
    if (sequence.phase != SequencePhase::kRestoring || sequence.restoration->progress > since) continue;
    if (sequence.restoration->has_next() || sequence.progress.is_in_flight())
      continue;  // it waits for steps that take long, not for the disk
    sequence.restoration->end = sequence.restoration->next;
    any = true;
  }
  return any;
}

// Whether they are published or not: where the pool has evicted the beginning of a sequence with a window, the tree takes nothing more of
// it, but the disk does.
void Restorer::save_full(Sequence& sequence) {
  for (std::int32_t end = (sequence.progress.saved() + 1) * block_tokens_; end <= sequence.progress.computed(); end += block_tokens_) {
    const auto begin = static_cast<std::size_t>(end - block_tokens_);
    sequence.saved_key = index_.next_key(sequence.saved_key, sequence.view(), begin);
    const cache::BlockId block = sequence.blocks[0][sequence.progress.saved()];
    sequence.progress.save();
    if (block != cache::BlockTable::kAbsent) tier_.save(block, sequence.saved_key, sequence.view().first(static_cast<std::size_t>(end)));
  }
}

}  // namespace braid::sched
