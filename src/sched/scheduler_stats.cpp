// What others may see of the scheduler.
#include "sched/scheduler.h"

#include <algorithm>

namespace braid::sched {

std::optional<SequencePhase> Scheduler::find(std::string_view id) const {
  const Sequence* sequence = roster_.find(id);
  return sequence != nullptr ? std::optional(sequence->phase) : std::nullopt;
}

EngineStats Scheduler::stats() const {
  EngineStats stats = counters_;
  stats.most_running = static_cast<std::uint32_t>(options_.max_batch);
  stats.waiting = static_cast<std::uint32_t>(roster_.queue().size());
  for (const SequenceMap* map : roster_.all()) {
    for (const auto& [rank, sequence] : *map) {
      sequence.blocks.for_each([&, most = sequence.progress.most()](const cache::BlockTable& table, std::int32_t) {
        const std::int32_t slots = table.size() * options_.block_tokens;
        stats.kv_unused_slots += static_cast<std::uint64_t>(slots - std::min(most, slots));
      });
      if (sequence.phase == SequencePhase::kStalled) ++stats.stalled;
      if (sequence.phase == SequencePhase::kParked) ++stats.parked;
      if (sequence.phase != SequencePhase::kWaiting) continue;
      ++(sequence.request->priority < 0   ? stats.waiting_better
         : sequence.request->priority > 0 ? stats.waiting_worse
                                          : stats.waiting_normal);
      if (sequence.queue_seconds) ++stats.preempted;
    }
  }
  stats.stalls_total = roster_.stalls();
  stats.parks_total = roster_.parks();
  stats.queue_wait = roster_.queue_wait();
  stats.cancel_to_free = roster_.cancel_to_free();
  stats.cancel_to_free_steps = roster_.cancel_to_free_steps();
  stats.prefill_tokens_per_second = pace_.tokens_per_second();
  stats.decode_tokens_per_second = decode_rate_;
  stats.running_step_seconds = lane_.running_seconds();
  for (const auto& [rank, sequence] : roster_.batch()) {
    if (sequence.phase == SequencePhase::kDecode) {
      ++stats.decoding;
    } else if (!sequence.is_leaving()) {
      ++stats.prefilling;
    }
  }
  stats.block_tokens = static_cast<std::uint32_t>(options_.block_tokens);
  stats.caches_prefixes = options_.prefix_cache;
  stats.blocks_total = static_cast<std::uint32_t>(roster_.pool().usable());
  stats.blocks_free = static_cast<std::uint32_t>(roster_.pool().free());
  count_groups(stats);
  stats.blocks_cached = static_cast<std::uint32_t>(roster_.pool().cached());
  stats.state_blocks_cached = static_cast<std::uint32_t>(roster_.cached_state_blocks());
  stats.state_blocks_most =
      options_.state_blocks > 0 ? static_cast<std::uint32_t>(std::min(options_.most_state_blocks, options_.blocks)) : 0;
  stats.states_dropped = roster_.states_dropped();
  stats.states_cached = options_.state_blocks > 0 ? stats.state_blocks_cached / static_cast<std::uint32_t>(options_.state_blocks) : 0;
  stats.cache_hit_tokens = roster_.cache_hit_tokens();
  stats.cache_miss_tokens = roster_.cache_miss_tokens();
  stats.cache_disk_hit_tokens = roster_.disk_hit_tokens();
  stats.cache_verified_blocks = roster_.verified_blocks();
  stats.cache_evictions = roster_.pool().evictions();
  if (const DiskTier* disk = roster_.disk_tier()) disk->store().fill(stats);
  return stats;
}

// After kv_unused_slots. Allocates nothing: figures are asked for when memory is short, too.
void Scheduler::count_groups(EngineStats& stats) const {
  stats.groups = static_cast<std::uint32_t>(roster_.groups().count());
  double held = 0.0;
  double used = -static_cast<double>(stats.kv_unused_slots);
  for (std::int32_t group = 0; group < roster_.groups().count(); ++group) {
    const std::int32_t blocks = roster_.pool().held(group);
    const double slots = static_cast<double>(blocks) * options_.block_tokens;
    stats.group_blocks[static_cast<std::size_t>(group)] = static_cast<std::uint32_t>(blocks);
    held += slots;
    used += slots * (options_.block_use.empty() ? 1.0 : options_.block_use[static_cast<std::size_t>(group)]);
  }
  stats.kv_fragmentation = held > 0.0 ? std::clamp(1.0 - used / held, 0.0, 1.0) : 0.0;
}

std::vector<SequenceSnapshot> Scheduler::sequences(std::size_t limit) const {
  std::vector<SequenceSnapshot> found;
  std::uint32_t position = 0;
  for (const SequenceMap* map : roster_.all()) {
    for (const auto& [rank, sequence] : *map) {
      if (found.size() == limit) return found;
      if (sequence.phase == SequencePhase::kDone) continue;
      found.push_back({sequence.request->id, phase_name(sequence.phase), sequence.request->priority, sequence.prompt_tokens,
                       sequence.cached_tokens.value_or(0), sequence.generated(), sequence.stop.max_tokens,
                       sequence.phase == SequencePhase::kWaiting ? ++position : 0});
    }
  }
  return found;
}

}  // namespace braid::sched
