#include "sched/restorer.h"

#include <algorithm>
#include <utility>

namespace braid::sched {

Restorer::Restorer(store::RecordStore& store, cache::PrefixIndex& index, const Groups& groups, const SchedulerOptions& options,
                   std::function<void()> on_progress)
    : index_(index), groups_(groups), block_tokens_(options.block_tokens), kv_verify_(options.kv_verify), disk_always_(options.disk_always),
      tier_(store, index, options, std::move(on_progress)) {}

// Where a state is wanted, what is loaded does not count before that is, so no window moves meanwhile.
bool Restorer::may_restore(const Sequence& sequence) const {
  return !kv_verify_ && !sequence.computes_all() && !(groups_.has_states() && groups_.any_window());
}

void Restorer::prefetch(Sequence& sequence) {
  if (!may_restore(sequence)) return;
  const auto wanted = sequence.view().first(sequence.tokens.size() - 1);
  path_.clear();
  index_.match(wanted, path_);
  const std::int32_t blocks = sequence.blocks.reach(index_, path_);
  std::int32_t have = blocks * block_tokens_;
  if (groups_.has_states()) have = std::min(have + block_tokens_ - 1, index_.last_state(wanted, path_).tokens);
  sequence.lookup = tier_.look_up(wanted, have, sequence.lookup.get());
  if (sequence.lookup == nullptr) sequence.restoration = tier_.prefetch(wanted, have, blocks);
}

bool Restorer::is_looking(Sequence& sequence) {
  if (sequence.lookup != nullptr && sequence.lookup->is_answered) prefetch(sequence);
  return sequence.lookup != nullptr;
}

bool Restorer::begin(Sequence& sequence, double prefill_rate) {
  const bool is_at_its_end = sequence.progress.planned() == sequence.progress.published_positions();
  if (!is_at_its_end || !may_restore(sequence) || (!disk_always_ && !choice_.takes_disk(prefill_rate, sequence.restoration != nullptr))) {
    sequence.restoration.reset();
  } else {
    const std::int32_t behind = sequence.state != nullptr ? sequence.state->source_end : 0;
    const std::int32_t awaits_behind = sequence.state != nullptr ? sequence.state->awaits_behind : 0;
    sequence.restoration = tier_.restore(std::move(sequence.restoration), sequence.view().first(sequence.tokens.size() - 1),
                                         std::max(sequence.progress.published_positions(), behind), awaits_behind);
  }
  return sequence.restoration != nullptr;
}

void Restorer::load(SequenceMap& batch, step::StepPlan& plan, std::vector<Sequence*>& loading, std::vector<Sequence*>& restored) {
  is_loading_ = false;
  for (auto& [rank, sequence] : batch) {
    if (sequence.phase != SequencePhase::kRestoring) continue;
    if (groups_.any_window()) move_window(sequence, groups_, places_to_restore(sequence));
    const std::size_t loads = plan.loads.size();
    const std::int32_t loaded = tier_.load(sequence.restoration, sequence.blocks, plan);
    if (!groups_.has_states()) count(sequence, loaded * block_tokens_);
    if (plan.loads.size() > loads) {
      sequence.progress.name();
      loading.push_back(&sequence);
    }
    if (!sequence.restoration->has_ended()) {
      is_loading_ = true;
      continue;
    }
    if (sequence.restoration->state_blocks > 0) {  // and it goes on from there, not from what the pool had
      count(sequence, sequence.restoration->tokens - sequence.progress.planned());
      sequence.fork_source.clear();
      sequence.state->source.clear();
    }
    const std::chrono::duration<double> taken = sequence.restoration->progress - sequence.restoration->begun;
    choice_.observe(sequence.restoration->loaded * block_tokens_, taken.count());
    sequence.restoration.reset();
    restored.push_back(&sequence);
  }
}

void Restorer::count(Sequence& sequence, std::int32_t tokens) {
  sequence.progress.reuse(tokens);
  hit_tokens_ += static_cast<std::uint64_t>(tokens);
}

// What every group sees at once, and the places of what is not seen any more.
std::int32_t Restorer::places_to_restore(const Sequence& sequence) const {
  std::int32_t places = sequence.restoration->end;
  for (std::int32_t group = 0; group < groups_.count(); ++group) {
    if (!groups_.has_window(group)) continue;
    const auto invisible = groups_.invisible(group, sequence.progress.planned());
    places = std::min(places, groups_.window_blocks(group) + std::max(0, invisible.last - invisible.first));
  }
  return places;
}

bool Restorer::give_up(SequenceMap& batch, std::chrono::steady_clock::time_point since) {
  bool any = false;
  for (auto& [rank, sequence] : batch) {
    if (sequence.phase != SequencePhase::kRestoring || sequence.restoration->progress > since) continue;
    if (sequence.restoration->has_next() || sequence.progress.is_in_flight())
      continue;  // it waits for steps that take long, not for the disk
    sequence.restoration->stop_at(sequence.restoration->next_block());
    any = true;
  }
  return any;
}

bool Restorer::give_up_asking(SequenceMap& waiting, std::chrono::steady_clock::time_point since) {
  bool any = false;
  for (auto& [rank, sequence] : waiting) {
    if (sequence.lookup == nullptr || sequence.lookup->is_answered || sequence.lookup->asked > since) continue;
    sequence.lookup.reset();
    any = true;
  }
  return any;
}

// Whether they are published or not: where the pool has evicted the beginning of a sequence with a window, the tree takes nothing more of
// it, but the disk does.
void Restorer::save_full(Sequence& sequence, std::int32_t positions) {
  for (std::int32_t end = (sequence.progress.saved() + 1) * block_tokens_; end <= positions; end += block_tokens_) {
    const auto begin = static_cast<std::size_t>(end - block_tokens_);
    const cache::PrefixKey key = index_.next_key(sequence.saved_key, sequence.view(), begin);
    if (!tier_.has_room(key, is_loading_)) return;
    sequence.blocks.for_each([&](const cache::BlockTable& table, std::int32_t group) {
      const cache::BlockId block = table[sequence.progress.saved()];
      if (block != cache::BlockTable::kAbsent) tier_.save(block, group, key, sequence.view().first(static_cast<std::size_t>(end)));
    });
    sequence.saved_key = key;
    sequence.progress.save();
  }
}

}  // namespace braid::sched
