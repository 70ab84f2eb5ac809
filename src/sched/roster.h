// Who waits, who runs and who pauses, and what they hold: slots and KV blocks.
#pragma once

#include "braid/engine_stats.h"
#include "braid/generation_request.h"
#include "cache/block_pool.h"
#include "cache/prefix_index.h"
#include "sched/bequest.h"
#include "sched/disk_tier.h"
#include "sched/options.h"
#include "sched/queue.h"
#include "sched/restorer.h"
#include "sched/sequence.h"
#include "sched/shared_prefill.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid::sched {

// Owns every sequence and the pool. Loop only; knows nothing of plans and streams.
//
// All maps are in order of rank, so "first" is who came first, within a class of priority: it is admitted first, gets the first free
// block and is never preempted. Whoever is the first in the batch therefore always goes on, and nothing can wait in a circle. Blocks
// held outside the batch (by stalled sequences) are given up first: a slow reader never makes others wait.
//
// Sequences that begin like one that is being prefilled wait for it and share what it computes (SharedPrefill). Blocks that are not
// full are shared by copy, in the step of the sequence's first row.
//
// Where the tokens of a group of layers see a window only, a sequence gives its blocks back when the window has passed them. All sequences
// have the same windows, so what a block holds still follows from the tokens up to its end, and is found by them.
//
// A recurrent state cannot go back, so with such layers a prefix ends where there is a checkpoint of it (PrefixIndex). They are taken on the
// way (BatchPlanner), and the state of a sequence that gives its blocks up becomes one. Some that it has come by it holds, until somebody needs
// their blocks: who is preempted next is the last to give them up, and nobody gives up the last one for which there is room beside all that the
// others who run may ever take. Who is preempted holds what it can go on from, and goes back from checkpoint to checkpoint as others take room.
//
// When the first in line lacks blocks, smaller ones that fit into what is free may pass it, but only a bounded number of times.
//
// With the prefix cache, full blocks are shared by all sequences that begin alike; nobody writes to a full block. A block is published
// when the step that wrote its last position has come back. A step posted after that one would read it safely too, the strand runs
// them in order; but only then is it known that the step has not failed, and which tokens were sampled.
class Roster {
 public:
  // With a store, which outlives it, the prefix cache goes on to disk; `on_progress` as in DiskTier.
  explicit Roster(const SchedulerOptions& options, store::RecordStore* store = nullptr, std::function<void()> on_progress = {});

  // As in Queue.
  Sequence& enqueue(GenerationRequest request, std::int32_t answer_room, std::chrono::steady_clock::time_point arrival) {
    Sequence& sequence = queue_.enqueue(std::move(request), answer_room, arrival, pool_, groups_);
    stretch_if_long(sequence);
    return sequence;
  }

  // Those of the batch whose next row would make them longer than options.stretch_beyond go on as after a preemption, stretched.
  void restart_long();

  // By GenerationRequest::id, until removed; null when unknown.
  Sequence* find(std::string_view id) const { return queue_.find(id); }

  // Moves the first of the queue into the batch while there are slots and blocks for all its known tokens and a margin for the batch to
  // grow.
  // It starts after the longest prefix that is cached; its last token is always computed. `prefill_rate` (tokens per second, 0: not
  // known) decides between disk and computing. At most `most_rows` that decode run at once.
  void admit(double prefill_rate, std::size_t most_rows = std::numeric_limits<std::size_t>::max());

  // Begins to read what the disk has of a waiting sequence's prefix and the pool has not.
  void prefetch(Sequence& sequence);
  // Plans the loads of those who are restored from disk, which are appended to `loading`; who has it all goes on to prefill.
  void restore(step::StepPlan& plan, std::vector<Sequence*>& loading);
  // Ends restorations that the disk has given nothing for so long: these sequences compute the rest. True when there were any.
  bool give_up_restoring(std::chrono::steady_clock::time_point since) {
    if (!restorer_) return false;
    const bool any = Restorer::give_up_asking(queue_.waiting(), since);
    return Restorer::give_up(batch_, since) || any;
  }

  // The next plan saves some of what only the pool has; nobody is here any more, nor will be. has_given_away() when that was all.
  void give_away();
  bool has_given_away() const { return !restorer_ || (bequest_ && bequest_->has_ended()); }

  // With kv_verify: moves the comparisons of what has been published since to the plan, and says of what.
  void add_checks(step::StepPlan& plan, std::vector<std::string>& checked);
  std::uint64_t verified_blocks() const { return verified_blocks_; }

  // Null without one.
  DiskTier* disk_tier() { return restorer_ ? &restorer_->tier() : nullptr; }
  const DiskTier* disk_tier() const { return restorer_ ? &restorer_->tier() : nullptr; }

  // More positions have come back from the strand, without failure: their full blocks can be found from now on. Where somebody
  // else has published the same tokens, the sequence goes on with his block. Its own may be handed out anew at once: posted steps that
  // still read it run before any step that could write to it.
  void publish(Sequence& sequence);

  std::int32_t cached_state_blocks() const { return prefix_index_ ? prefix_index_->state_blocks() : 0; }
  std::uint64_t states_dropped() const { return prefix_index_ ? prefix_index_->states_dropped() : 0; }
  // The prefix cache forgets what no sequence holds. Returns how many blocks that were.
  std::int32_t forget_unused() { return prefix_index_ ? prefix_index_->forget_unused() : 0; }

  // Preempts until every sequence of the batch that needs a block to decode can have one, now or when the blocks of those who leave have
  // come back: the worst priority first, then who loses the least work for each block that it frees, then the worst rank; never the
  // first. Returns how many were preempted.
  std::int32_t make_room();
  // The pool is to have so many blocks from now on, but no fewer than the longest of the sequences may need: returns how many. Fewer than
  // there are come free as in make_room(), and are withdrawn then.
  std::int32_t resize(std::int32_t blocks);
  // What can be withdrawn of it now, to be given back by the plan. Returns how many were preempted for it.
  std::int32_t shrink(std::vector<std::int32_t>& given_back);
  // With a window a prefill takes blocks as it goes on. Each that has none left gets its next one, before somebody who waits can hold it
  // as part of his prefix. False when there are too few.
  bool extend_prefills();

  // Takes a decoding sequence with nothing in flight out of the batch; it keeps its blocks until they are needed or park() takes them.
  // resume() puts it back into the queue.
  void stall(Sequence& sequence);
  void park(Sequence& sequence);
  void resume(Sequence& sequence);
  std::uint64_t stalls() const { return stalls_; }
  std::uint64_t parks() const { return parks_; }

  // It goes on with other weights, as after a preemption: all that it knows is computed again with them, and what steps that are out bring
  // still counts, and is published as the older ones'.
  void change_weights(Sequence& sequence, AdapterUse adapter);

  // A step that names it threw: it goes on from what has come back before, once nothing of it is in flight and it is not held.
  void retry(Sequence& sequence);
  // Its `held` has been taken back.
  void unhold(Sequence& sequence);

  // Its end, in any phase. The sequence is destroyed at once or, while posted steps name it, by settle(). How long that takes one that is
  // not wanted any more is measured.
  void remove(Sequence& sequence, bool is_cancelled = false);
  void count_step() { ++steps_; }
  const DurationHistogram& cancel_to_free() const { return cancel_to_free_; }
  const std::array<std::uint64_t, 4>& cancel_to_free_steps() const { return cancel_to_free_steps_; }
  const DurationHistogram& queue_wait() const { return queue_wait_; }

  // To be called when the last posted step that names it has come back. May destroy it.
  void settle(Sequence& sequence);

  bool empty() const { return queue_.size() == 0 && batch_.empty() && stalled_.empty(); }
  SequenceMap& batch() { return batch_; }
  const SequenceMap& batch() const { return batch_; }
  SequenceMap& stalled() { return stalled_; }
  const SequenceMap& stalled() const { return stalled_; }
  const Queue& queue() const { return queue_; }
  // Running ones first.
  std::array<SequenceMap*, 4> all() { return {&batch_, &stalled_, &queue_.waiting(), &queue_.following()}; }
  std::array<const SequenceMap*, 4> all() const { return {&batch_, &stalled_, &queue_.waiting(), &queue_.following()}; }
  const cache::BlockPool& pool() const { return pool_; }
  const Groups& groups() const { return groups_; }
  // Known tokens of all admissions: found in the prefix cache (of these on disk), and not. All 0 without one.
  std::uint64_t cache_hit_tokens() const { return cache_hit_tokens_; }
  std::uint64_t disk_hit_tokens() const { return restorer_ ? restorer_->hit_tokens() : 0; }
  std::uint64_t cache_miss_tokens() const { return cache_miss_tokens_; }

 private:
  static constexpr cache::BlockId kNoNode = cache::PrefixIndex::kNoParent;

  std::int32_t blocks_for(std::int32_t positions) const { return (positions + block_tokens_ - 1) / block_tokens_; }
  // Of the last of so many positions in its block, from 1.
  std::int32_t offset_of(std::int32_t end) const { return (end - 1) % block_tokens_ + 1; }
  // In the batch, and not on its way out of it.
  bool runs(const Sequence& sequence) const { return sequence.home == &batch_ && !sequence.is_leaving(); }
  // Of positions, as many as it will ever hold.
  std::int64_t most_blocks(const Sequence& sequence) const { return groups_.blocks_at_once(blocks_for(sequence.most_positions())); }
  std::int32_t promised() const;
  bool can_reclaim(std::int32_t count, const Sequence& taker, const Sequence* victim) const;
  void wait_for_reader(Sequence& sequence, SequencePhase phase);
  void observe_cancelled(const Sequence& sequence);
  std::int32_t margin() const;
  bool take_blocks(Sequence& sequence);
  bool fits_free(const Sequence& sequence) const;
  void start(Sequence& sequence);
  bool gives_checkpoints(const Sequence& taker) const;
  bool reclaim(std::int32_t wanted, Sequence* taker, const Sequence* victim);
  void reuse_prefix(Sequence& sequence, std::int32_t most, bool may_restore);
  void begin_prefill(Sequence& sequence);
  void end_restoration(Sequence& sequence);
  void compute_rest(Sequence& sequence);
  void fork_beginning(Sequence& sequence);
  std::size_t decoding() const;  // in the batch, or going to
  bool follow(Sequence& sequence);
  void return_woken();
  void stop_sharing(Sequence& sequence);
  bool awaits_drafts(const Sequence& sequence) const;
  void publish_full(Sequence& sequence);
  cache::BlockId publish_tail(Sequence& sequence);
  void reuse_state(Sequence& sequence, std::int32_t most);
  void hold_beginning(Sequence& sequence, std::int32_t most);
  void step_back(Sequence& sequence);
  void keep_earlier(Sequence& sequence, std::int32_t end);
  cache::PrefixIndex::StateHit earlier_state(const Sequence& sequence, std::int32_t most);
  std::int32_t surely_fits(const Sequence& sequence) const;
  void await_state(Sequence& sequence, std::span<const cache::BlockId> in_pool);
  cache::BlockId holder_of(const cache::SequenceView& beginning, cache::BlockId node);
  cache::BlockId node_of_end(const Sequence& sequence, std::int32_t end, cache::BlockId tail) const;
  void publish_states(Sequence& sequence, cache::BlockId tail);
  void give_up_state(Sequence& sequence, cache::BlockId tail);
  void let_go_of_dropped();
  void reclaim_checkpoints(std::int32_t wanted, const Sequence* victim);
  void reclaim_checkpoints(std::int32_t wanted, Sequence& sequence, bool all);
  void attach(Sequence& sequence, std::int32_t index, cache::BlockId known);
  void put_state(cache::BlockId node, std::int32_t end, const cache::BlockTable& state);
  void verify(const Sequence& sequence, std::int32_t index, std::int32_t group, cache::BlockId own, cache::BlockId known);
  void count_reuse(Sequence& sequence);
  double loss_per_block(const Sequence& sequence) const;
  bool yields_before(const Sequence& one, const Sequence& other) const;
  Sequence* next_victim();
  void drop_blocks(Sequence& sequence);
  void preempt(Sequence& sequence);
  void take_weights(Sequence& sequence);
  void stretch_if_long(Sequence& sequence);
  void rewind(Sequence& sequence);
  void leave_batch(Sequence& sequence, SequenceMap& to);
  void move(Sequence& sequence, SequenceMap& to);
  void set_outside_holder(Sequence& sequence, bool is_holder);

  std::int32_t block_tokens_;
  const Groups groups_;
  cache::BlockPool pool_;  // outlives the sequences below, as the groups do
  std::int32_t target_;    // blocks that it is to have
  std::optional<cache::PrefixIndex> prefix_index_;
  std::optional<Restorer> restorer_;  // none without a disk tier
  std::optional<Bequest> bequest_;    // once it has begun
  const std::int32_t stretch_beyond_;
  const bool write_through_;
  const bool has_drafts_;      // in blocks that are written to disk
  double prefill_rate_ = 0.0;  // tokens per second; 0: not known
  std::optional<SharedPrefill> shared_prefill_;
  const bool kv_verify_;
  std::vector<step::BlockCheck> checks_;
  std::vector<std::string> checked_;  // parallel to it
  std::uint64_t verified_blocks_ = 0;
  std::vector<step::SlotId> slots_;  // free ones
  Queue queue_;
  SequenceMap batch_;               // also those that have left it but are named by posted steps
  std::int64_t most_of_batch_ = 0;  // most_blocks() of all who run
  std::uint64_t let_go_of_ = 0;     // states that were dropped and are held by nobody any more
  SequenceMap stalled_;
  std::map<Rank, Sequence*> outside_holders_;  // those outside the batch that hold blocks
  std::vector<cache::BlockId> path_;           // reused by lookups
  mutable std::vector<std::int32_t> holders_;  // reused by counts of blocks: none of any block
  std::vector<Sequence*> woken_;               // followers to be returned to the queue
  std::vector<Sequence*> restored_;            // reused
  std::uint64_t cache_hit_tokens_ = 0;
  std::uint64_t cache_miss_tokens_ = 0;
  std::uint64_t stalls_ = 0;
  std::uint64_t parks_ = 0;
  std::uint64_t steps_ = 0;  // that have come back
  DurationHistogram queue_wait_;
  DurationHistogram cancel_to_free_;
  std::array<std::uint64_t, 4> cancel_to_free_steps_{};
};

}  // namespace braid::sched
