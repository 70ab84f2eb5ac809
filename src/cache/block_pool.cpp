#include "cache/block_pool.h"

#include <cassert>
#include <cstddef>
#include <numeric>

namespace braid::cache {

BlockPool::BlockPool(std::int32_t total) : references_(static_cast<std::size_t>(total)), free_(static_cast<std::size_t>(total)) {
  std::iota(free_.rbegin(), free_.rend(), 0);  // the lowest block is on top
}

std::optional<BlockId> BlockPool::allocate() {
  if (free_.empty()) return std::nullopt;
  const BlockId block = free_.back();
  free_.pop_back();
  references_[static_cast<std::size_t>(block)] = 1;
  return block;
}

void BlockPool::share(BlockId block) {
  assert(references(block) > 0 && "sharing a free block");
  ++references_[static_cast<std::size_t>(block)];
}

void BlockPool::release(BlockId block) {
  assert(references(block) > 0 && "releasing a free block");
  if (--references_[static_cast<std::size_t>(block)] == 0) free_.push_back(block);
}

std::int32_t BlockPool::references(BlockId block) const {
  assert(block >= 0 && block < total() && "no such block");
  return references_[static_cast<std::size_t>(block)];
}

}  // namespace braid::cache
