// What sequences get from the disk tier and give to it.
#pragma once

#include "cache/prefix_index.h"
#include "sched/disk_tier.h"
#include "sched/groups.h"
#include "sched/options.h"
#include "sched/restore_choice.h"
#include "sched/sequence.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace braid::sched {

// A sequence's prefix is read while it waits and loaded once it is in the batch. Loop only; store, index and groups outlive it.
class Restorer {
 public:
  // `on_progress` as in DiskTier.
  Restorer(store::RecordStore& store, cache::PrefixIndex& index, const Groups& groups, const SchedulerOptions& options,
           std::function<void()> on_progress);

  DiskTier& tier() { return tier_; }
  const DiskTier& tier() const { return tier_; }

  // Begins to read what the disk has of a waiting sequence's prefix and the pool has not, or to ask whether a store that others write to has
  // it.
  void prefetch(Sequence& sequence);
  // Whether a waiting sequence has no answer to that yet.
  bool is_looking(Sequence& sequence);
  // It is in the batch and has what the pool has of it; true when it is to get more from disk. `prefill_rate`: tokens per second, 0: not
  // known.
  bool begin(Sequence& sequence, double prefill_rate);
  // Plans the loads of those of the batch that are restored, which are appended to `loading`; those that have it all, to `restored`.
  void load(SequenceMap& batch, step::StepPlan& plan, std::vector<Sequence*>& loading, std::vector<Sequence*>& restored);
  // Ends restorations that the disk has given nothing for since then: these sequences compute the rest. True when there were any.
  static bool give_up(SequenceMap& batch, std::chrono::steady_clock::time_point since);

  // The same of questions that have no answer: a store that is to be found by its name may hang before its own time counts.
  static bool give_up_asking(SequenceMap& waiting, std::chrono::steady_clock::time_point since);

  // The full blocks of its first `positions`, which have come back, in order: as many as there are buffers for, the others when it is called
  // again.
  void save_full(Sequence& sequence, std::int32_t positions);

  std::uint64_t hit_tokens() const { return hit_tokens_; }

 private:
  bool may_restore(const Sequence& sequence) const;
  void count(Sequence& sequence, std::int32_t tokens);
  std::int32_t places_to_restore(const Sequence& sequence) const;

  cache::PrefixIndex& index_;
  const Groups& groups_;
  const std::int32_t block_tokens_;
  const bool kv_verify_;
  const bool disk_always_;
  DiskTier tier_;
  RestoreChoice choice_;
  bool is_loading_ = false;           // somebody is restored
  std::vector<cache::BlockId> path_;  // reused
  std::uint64_t hit_tokens_ = 0;
};

}  // namespace braid::sched
