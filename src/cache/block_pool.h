// Metadata of the KV arena: which of its fixed-size blocks are in use. The bytes themselves belong to the compute strand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace braid::cache {

// Index of a block in the arena, in [0, BlockPool::total()).
using BlockId = std::int32_t;

// Sole owner of the free list. Loop only. Every operation is O(1); nothing but withdraw() allocates after
// construction.
//
// All blocks are alike, whichever group of layers uses one, so that none is ever stranded with a group that has no use for it.
//
// A block is handed out with one reference. When the last reference is released it is empty again or, if it was marked by keep(),
// cached: nobody holds it, its contents can be found again, and it can be handed out like an empty one. Cached blocks are given away
// only when no empty one is left, the one released longest ago first.
class BlockPool {
 public:
  // `groups`: of layers, each with blocks of its own.
  explicit BlockPool(std::int32_t total, std::int32_t groups = 1);

  // Called when allocate() takes a cached block, before it is handed out, and by empty_cached(): what was known of its contents is to be forgotten.
  void on_evict(std::function<void(BlockId)> hook) { on_evict_ = std::move(hook); }

  // nullopt when every block is in use.
  std::optional<BlockId> allocate(std::int32_t group = 0);

  // One more owner of a block that is in use or cached.
  void share(BlockId block);

  // One owner less. Releasing a free block is a bug and asserts.
  void release(BlockId block);

  // The contents of this block, which is in use, are worth keeping when nobody holds it any more.
  void keep(BlockId block);

  // They are not any more: a cached block is empty from now on.
  void forget(BlockId block);

  // Takes free blocks out of use, empty ones first, of these the ones that were never handed out; appends which, `count` at most.
  void withdraw(std::int32_t count, std::vector<BlockId>& taken);
  // As many of them, empty, are in use again.
  void restore(std::int32_t count);
  std::int32_t withdrawn() const { return static_cast<std::int32_t>(withdrawn_.size()); }
  std::int32_t usable() const { return total() - withdrawn(); }

  // All cached blocks are empty from now on, as if each had been taken; none counts as evicted. Returns how many there were.
  std::int32_t empty_cached();

  std::int32_t references(BlockId block) const;
  std::int32_t total() const { return static_cast<std::int32_t>(entries_.size()) - 1; }
  // What allocate() can hand out: empty and cached blocks.
  std::int32_t free() const { return static_cast<std::int32_t>(empty_.size()) + cached_; }
  std::int32_t cached() const { return cached_; }
  // In use by this group.
  std::int32_t held(std::int32_t group) const { return held_[static_cast<std::size_t>(group)]; }
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Entry {
    std::int32_t references = 0;
    bool kept = false;
    std::uint8_t group = 0;  // that it was last handed out to
    BlockId older = 0;       // neighbours among the cached blocks, while cached
    BlockId newer = 0;
  };

  std::int32_t& held_with(BlockId block) { return held_[entry(block).group]; }
  Entry& entry(BlockId block) { return entries_[static_cast<std::size_t>(block)]; }
  BlockId take_oldest();
  void link_newest(BlockId block);
  void unlink(BlockId block);

  std::vector<Entry> entries_;  // [total + 1]: the last one joins both ends of the list of cached blocks
  std::vector<BlockId> empty_;  // a stack: the block released last is the warmest and is handed out first
  std::vector<BlockId> withdrawn_;
  std::vector<std::int32_t> held_;  // [groups]
  std::int32_t cached_ = 0;
  std::uint64_t evictions_ = 0;
  std::function<void(BlockId)> on_evict_;
};

}  // namespace braid::cache
