// Moves KV blocks between the pool and the disk: by the steps' saves and loads on one side, by the store's reads and writes on the other.
#pragma once

#include "braid/engine.h"
#include "cache/prefix_index.h"
#include "sched/options.h"
#include "step/step.h"
#include "store/block_store.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace braid::sched {

// The blocks of one sequence that are on their way from disk, in order. A sequence owns its own; dropping it cancels.
struct Restoration {
  std::int32_t next = 0;                               // index of the block that is to be loaded next
  std::int32_t asked = 0;                              // blocks before this one have been asked for
  std::int32_t end = 0;                                // where to stop: the first one that the disk does not have, or could not read
  std::deque<std::optional<store::ReadBlock>> blocks;  // [next, asked): what has arrived
  std::vector<cache::PrefixKey> keys;                  // of blocks [0, end)
  std::shared_ptr<const store::Prefix> prefix;
  std::chrono::steady_clock::time_point begun;     // when the sequence got its blocks
  std::int32_t loaded = 0;                         // blocks since
  std::chrono::steady_clock::time_point progress;  // when it last got on, or asked for more

  bool has_ended() const { return next >= end; }
  // The next block lies in a buffer.
  bool has_next() const { return !has_ended() && !blocks.empty() && blocks.front(); }
};

// Loop only. Its host buffers are few: what finds none is not saved, or waits to be read.
//
// Saving: a block that is evicted while a plan is made, or that is published when everything is to be written, is saved by that plan,
// before its new owner's rows run. Once the step is back the record goes to the store. Restoring: records are read into buffers while
// the sequence queues; once it is in the batch and has blocks, plans load them, in order, before the sequence's first rows.
class DiskTier {
 public:
  // `on_progress` is called when a block has arrived, or will not, or buffers have become free; index and store outlive the tier.
  DiskTier(store::BlockStore& store, cache::PrefixIndex& index, const SchedulerOptions& options, std::function<void()> on_progress);

  // The block's contents are worth keeping: the next plan saves them, unless the disk has them.
  void save(cache::BlockId block);
  // The same for the last block of a sequence, which need not be in the index.
  void save(cache::BlockId block, const cache::PrefixKey& key, const cache::SequenceView& sequence);

  // For kv_verify: compares this block, which has just been computed, with the disk's, if the disk has it, and aborts the process
  // when they differ. False when it does not, or there is no buffer. `what` says what is compared.
  bool verify(cache::BlockId block, std::string what);

  // Begins to read what follows the first `have` blocks of a sequence that may wait for long: takes no more than its share of the
  // buffers. Null when the disk has nothing of it, or is being asked for all of that already: who waits with equal beginnings follows the
  // first of them.
  std::shared_ptr<Restoration> prefetch(const cache::SequenceView& sequence, std::int32_t have);
  // The same for one that has got its blocks, `have` of them with contents; goes on with what was prefetched (or null) if it fits.
  std::shared_ptr<Restoration> restore(std::shared_ptr<Restoration> prefetched, const cache::SequenceView& sequence, std::int32_t have);

  // Loads what has arrived into the sequence's blocks, as many as it has, and asks for more. Returns how many blocks were loaded.
  std::int32_t load(const std::shared_ptr<Restoration>& restoration, std::span<const cache::BlockId> blocks, step::StepPlan& plan);

  // Adds the saves; to be called last, before the plan is posted.
  void complete(step::StepPlan& plan);
  void on_step_back(const step::StepPlan& plan, bool has_failed);

  DiskCacheStats stats() const { return store_.stats(); }
  bool has_saves() const { return !saves_.empty(); }
  store::BlockStore& store() { return store_; }
  const store::BlockStore& store() const { return store_; }

 private:
  struct Save {
    cache::BlockId block = 0;
    store::BlockStore::PendingRecord record;
    std::shared_ptr<const store::Prefix> compare;  // not to be written, but compared with the record of these tokens
    std::string what;
  };
  // What a posted step reads from or writes to.
  struct Posted {
    std::vector<Save> saves;
    std::vector<store::Buffer> loads;
  };

  std::shared_ptr<Restoration> find(const cache::SequenceView& sequence, std::int32_t have) const;  // null when the disk has nothing
  bool is_on_its_way(const Restoration& wanted) const;
  bool wants(const cache::PrefixKey& key) const { return !store_.contains(key) && store_.free_buffers() > 0; }
  // `spare` buffers are left for others.
  void ask(const std::shared_ptr<Restoration>& restoration, std::size_t spare);
  void compare(Save save);
  void on_arrived(Restoration& restoration, std::int32_t index, std::optional<store::ReadBlock> block);
  Posted& posted(std::uint64_t plan) { return posted_[plan % posted_.size()]; }

  store::BlockStore& store_;
  cache::PrefixIndex& index_;
  const std::size_t block_tokens_;
  const std::size_t reserved_buffers_;  // not for prefetching
  std::function<void()> on_progress_;
  std::vector<Save> saves_;                                   // for the next plan
  std::array<Posted, 2> posted_;                              // by plan id
  std::vector<std::weak_ptr<const Restoration>> prefetched_;  // few: each has had a buffer
  cache::PrefixIndex::Path path_;                             // reused
};

}  // namespace braid::sched
