// Metadata of the KV arena: which of its fixed-size blocks are in use. The bytes themselves belong to the compute strand.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace braid::cache {

// Index of a block in the arena, in [0, BlockPool::total()).
using BlockId = std::int32_t;

// Sole owner of the free list. Loop only. Every operation is O(1); nothing allocates after construction.
// A block is handed out with one reference and is free again when the last reference is released.
class BlockPool {
 public:
  explicit BlockPool(std::int32_t total);

  // nullopt when every block is in use.
  std::optional<BlockId> allocate();

  // One more owner of a block that is in use.
  void share(BlockId block);

  // One owner less. Releasing a free block is a bug and asserts.
  void release(BlockId block);

  std::int32_t references(BlockId block) const;
  std::int32_t total() const { return static_cast<std::int32_t>(references_.size()); }
  std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }

 private:
  std::vector<std::int32_t> references_;  // [total], 0 while free
  std::vector<BlockId> free_;             // a stack: the block released last is the warmest and is handed out first
};

}  // namespace braid::cache
