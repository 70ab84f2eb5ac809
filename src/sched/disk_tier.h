// Moves KV blocks between the pool and a store below it, which is a disk, a Redis or both: by the steps' saves and loads on one side, by the
// store's reads and writes on the other.
#pragma once

#include "braid/engine.h"
#include "cache/prefix_index.h"
#include "sched/holdings.h"
#include "sched/options.h"
#include "step/step.h"
#include "store/record_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::sched {

// Of what one group has of a block, or of a part of the state at its end, which come after the groups. Those of one block differ surely; that
// they are of the same block is compared (record.h).
inline cache::PrefixKey piece_key(const cache::PrefixKey& key, std::int32_t piece) {
  return {key.low ^ static_cast<std::uint64_t>(piece) * 0x9E3779B97F4A7C15ULL, key.high};
}

// Groups whose blocks have records; none where blocks hold nothing, as those of a model without attention. `block_use` as in
// SchedulerOptions.
inline std::int32_t groups_with_records(const std::vector<double>& block_use) {
  return std::ranges::all_of(block_use, [](double use) { return use == 0.0; }) ? 0 : static_cast<std::int32_t>(block_use.size());
}

// What of one sequence is on its way from disk, in order. A sequence owns its own; dropping it cancels.
//
// It comes in pieces: what each group of layers has of a block, block after block, then the parts of the recurrent state at the end.
// Without that state the blocks are of no use, so where one is wanted nothing counts before all of it is loaded. A state may be within the
// last block, which has records of its own then, for just the tokens before it.
struct Restoration {
  std::int32_t groups = 1;        // pieces of a block; 0: blocks hold nothing, as those of a model without attention
  std::int32_t state_blocks = 0;  // pieces of the state; 0: none is wanted, or it will not come
  std::int32_t begin = 0;         // blocks before this one are there
  std::int32_t end = 0;           // where to stop: the first block that the disk does not have, or could not read
  std::int32_t tokens = 0;        // from the sequence's beginning, that all of it stands for
  std::int32_t next = 0;          // the piece that is to be loaded next; what group g has of block i is piece i * groups + g
  std::deque<std::optional<store::ReadBlock>> pieces;  // from `next` on, those that have been asked for: what has arrived
  std::vector<cache::PrefixKey> keys;                  // of blocks [0, end), of the last one as far as `tokens` reach
  std::shared_ptr<const store::Prefix> prefix;
  std::chrono::steady_clock::time_point begun;     // when the sequence got its blocks
  std::int32_t loaded = 0;                         // blocks since
  std::chrono::steady_clock::time_point progress;  // when it last got on, or asked for more

  std::int32_t next_block() const { return groups > 0 ? next / groups : has_ended() ? end : begin; }
  std::int32_t last_piece() const { return end * groups + state_blocks; }
  bool has_ended() const { return next >= last_piece(); }
  // The next piece lies in a buffer.
  bool has_next() const { return !has_ended() && !pieces.empty() && pieces.front(); }
  // Nothing comes from block `block` on.
  void stop_at(std::int32_t block) {
    end = std::min(end, state_blocks > 0 ? 0 : block);
    state_blocks = 0;
  }
};

// What a store is asked before a sequence is admitted, where only others know what it has. The sequence owns it; dropping it cancels.
struct Lookup {
  std::int32_t round = 1;
  bool is_answered = false;
  std::chrono::steady_clock::time_point asked = std::chrono::steady_clock::now();
};

// Loop only. Its host buffers are few: what finds none is not saved, or waits to be read.
//
// Each group of layers has a record of a block, if its blocks hold anything, and each part of a state one. Saving: what is evicted while a
// plan is made, or published when everything is to be written, is saved by that plan, before its new owner's rows run. Once the step is
// back the record goes to the store. States are kept with all parts or not at all, and within a block together with its beginning. Restoring: records are read into buffers while
// the sequence queues; once it is in the batch and has blocks, plans load them, in order, before the sequence's first rows.
class DiskTier {
 public:
  // `on_progress` is called when a block has arrived, or will not, or buffers have become free; index and store outlive the tier.
  DiskTier(store::RecordStore& store, cache::PrefixIndex& index, const SchedulerOptions& options, std::function<void()> on_progress);

  // What the group has of a full block of the index, or the state after the first `offset` tokens of a block, is worth keeping: the next plan
  // saves it, unless the disk has it.
  void save(cache::BlockId node, std::int32_t group);
  void save_state(cache::BlockId node, std::int32_t offset);
  // The same of what a group has of the last block of a sequence, which has this key and need not be in the index.
  void save(cache::BlockId block, std::int32_t group, const cache::PrefixKey& key, const cache::SequenceView& sequence);

  // There are buffers for what the disk lacks of the block with this key; with `leaves_some` without those that restorations are to have.
  bool has_room(const cache::PrefixKey& key, bool leaves_some) const {
    const std::size_t missing = missing_groups(key);
    return missing == 0 || missing + (leaves_some ? reserved_buffers_ : 0) <= store_.free_buffers();
  }

  // For kv_verify: compares what the group has of this block of the index, which has just been computed, with the disk's, if the disk has
  // it, and aborts the process when they differ. False when it does not, or there is no buffer. `what` says what is compared.
  bool verify(cache::BlockId node, std::int32_t group, std::string what);

  // Asks whether the store has what follows the first `have` tokens of a sequence; `before` is what was asked last, or null. Null when all
  // that counts is known, or enough has been asked.
  std::shared_ptr<Lookup> look_up(const cache::SequenceView& sequence, std::int32_t have, const Lookup* before);

  // Begins to read what follows the first `have` tokens of a sequence that may wait for long: takes no more than its share of the
  // buffers. Of the first `blocks` blocks it reads nothing, and begins behind fewer only where the state that it finds is before their end. Null when the disk has nothing of it, or is being asked for all of that already: who waits with equal beginnings follows the
  // first of them.
  std::shared_ptr<Restoration> prefetch(const cache::SequenceView& sequence, std::int32_t have, std::int32_t blocks);
  // The same for one that has got its blocks, with contents of `have` tokens, or of more but for their state where it has `blocks` blocks of
  // them; goes on with what was prefetched (or null) if it fits.
  std::shared_ptr<Restoration> restore(std::shared_ptr<Restoration> prefetched, const cache::SequenceView& sequence, std::int32_t have,
                                       std::int32_t blocks = 0);

  // Loads what has arrived into the sequence's blocks, as many as it has, and asks for more. Returns how many blocks are complete by that.
  std::int32_t load(const std::shared_ptr<Restoration>& restoration, const Holdings& blocks, step::StepPlan& plan);

  // Adds the saves; to be called last, before the plan is posted.
  void complete(step::StepPlan& plan);
  void on_step_back(const step::StepPlan& plan, bool has_failed);

  bool has_saves() const { return !saves_.empty(); }
  store::RecordStore& store() { return store_; }
  const store::RecordStore& store() const { return store_; }

 private:
  struct Save {
    cache::BlockId block = 0;
    std::int32_t piece = 0;
    store::PendingRecord record;
    std::shared_ptr<const store::Prefix> compare;  // not to be written, but compared with the record of these tokens
    std::string what;
  };
  // What a posted step reads from or writes to.
  struct Posted {
    std::vector<Save> saves;
    std::vector<store::Buffer> loads;
  };

  std::shared_ptr<Restoration> find(const cache::SequenceView& sequence, std::int32_t have,
                                    std::int32_t blocks) const;  // null when the disk has nothing
  std::int32_t find_state(const cache::SequenceView& sequence, std::int32_t have, std::vector<cache::PrefixKey>& keys) const;
  bool is_on_its_way(const Restoration& wanted) const;
  bool has_pieces(const cache::PrefixKey& key, std::int32_t first, std::int32_t count) const;
  bool has_block(const cache::PrefixKey& key) const { return has_pieces(key, 0, groups_); }
  bool has_state(const cache::PrefixKey& key) const { return has_pieces(key, groups_, state_blocks_); }
  std::size_t missing(const cache::PrefixKey& key, std::int32_t first, std::int32_t count) const;
  std::size_t missing_parts(const cache::PrefixKey& key) const { return missing(key, groups_, state_blocks_); }
  std::size_t missing_groups(const cache::PrefixKey& key) const { return missing(key, 0, groups_); }
  bool wants(const cache::PrefixKey& key) const { return store_.lacks(key) && store_.free_buffers() > 0; }
  bool ask_for(const cache::PrefixKey& key, std::int32_t first, std::int32_t count, std::vector<cache::PrefixKey>& asked) const;
  void ask_for_states(const cache::SequenceView& sequence, std::int32_t have, std::vector<cache::PrefixKey>& keys,
                      std::vector<cache::PrefixKey>& asked) const;
  void add_save(cache::BlockId block, std::int32_t piece, const cache::PrefixKey& key, const cache::SequenceView& sequence);
  // `spare` buffers are left for others.
  void ask(const std::shared_ptr<Restoration>& restoration, std::size_t spare);
  step::BlockCopy copy_of(cache::BlockId block, std::int32_t piece, std::byte* bytes) const;
  void compare(Save save);
  static void on_arrived(Restoration& restoration, std::int32_t piece, std::optional<store::ReadBlock> block);
  Posted& posted(std::uint64_t plan) { return posted_[plan % posted_.size()]; }

  store::RecordStore& store_;
  cache::PrefixIndex& index_;
  const std::size_t block_tokens_;
  const std::int32_t groups_;  // that have records
  const std::int32_t state_blocks_;
  const std::size_t draft_bytes_;
  const std::size_t reserved_buffers_;  // not for prefetching
  std::function<void()> on_progress_;
  std::vector<Save> saves_;                                   // for the next plan
  std::array<Posted, 2> posted_;                              // by plan id
  std::vector<std::weak_ptr<const Restoration>> prefetched_;  // few: each has had a buffer
  cache::PrefixIndex::Path path_;                             // reused
};

}  // namespace braid::sched
